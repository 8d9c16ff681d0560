"""The shim: a small process per node that starts, terminates and reaps containers, and ends with its cluster.

`program` runs in that process, with nothing but the standard library; the other modules are the cluster's side of the
socket.
"""
