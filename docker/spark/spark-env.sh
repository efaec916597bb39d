# The name by which the other containers find this one. Spark would take what the address resolves back to, which Docker makes
# of project and service with underscores: no valid host name in Spark's URLs.
export SPARK_LOCAL_HOSTNAME=$(hostname)
