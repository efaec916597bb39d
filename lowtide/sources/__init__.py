"""Where settings come from: the configuration file's text, HBase's and Hadoop's own files, environment variables."""
