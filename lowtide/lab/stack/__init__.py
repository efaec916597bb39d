"""The embedded store: HBase, its Thrift gateway and Omid's oracle on this machine, from jars.

::

    stack = Stack(StackConfig(home=Path(".lowtide/store")))
    stack.up(progress=print)
    ...
    stack.down()

Every port is open on the loopback interface only. The parts are processes of their own that outlive the program that
started them; data and logs live under ``home`` and survive ``down`` and ``up``. HBase is one of them, or several: with
``StackConfig(region_servers=3)`` ZooKeeper, the master and each region server.
"""

from lowtide.lab.servers import Part
from lowtide.lab.stack.config import StackConfig, StackError, free_ports_config, load
from lowtide.lab.stack.machine import embedded_classpath
from lowtide.lab.stack.stack import Stack

__all__ = ["Part", "Stack", "StackConfig", "StackError", "embedded_classpath", "free_ports_config", "load"]
