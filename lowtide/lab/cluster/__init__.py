"""The laboratory's cluster: YARN and HDFS on this machine, from Hadoop's own jars.

::

    cluster = Cluster(free_ports_cluster(Path(".lowtide/cluster")))
    cluster.up(progress=print)
    store = Stack(free_ports_config(home, extra_hbase={"hbase.rootdir": f"{cluster.hdfs}/hbase"}))
    ...
    cluster.down()

With ``free_ports_cluster(home, realm)``, where ``realm`` is the configuration of a secured store whose key distribution
centre runs, all log in by Kerberos (:mod:`lowtide.lab.cluster.secured`).

Every port is open on the loopback interface only. The four servers outlive the program that started them; files,
containers and logs live under ``home``.
"""

from lowtide.lab.cluster.cluster import Cluster
from lowtide.lab.cluster.config import ClusterConfig, free_ports_cluster

__all__ = ["Cluster", "ClusterConfig", "free_ports_cluster"]
