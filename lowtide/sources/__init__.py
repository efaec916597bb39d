"""Where settings come from beside the configuration file: HBase's and Hadoop's own files, and environment variables."""
