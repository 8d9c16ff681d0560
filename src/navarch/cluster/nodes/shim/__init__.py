"""The shim: a small process per node that starts, ends and reaps containers, and ends with its cluster.

`program` is what runs in it, with nothing but the standard library; the rest is this side of the socket to it.
"""
