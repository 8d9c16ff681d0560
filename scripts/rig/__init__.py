"""The rig: a real Kubernetes for tests, built from source and run on this machine.

>>> import rig
>>> with rig.running() as cluster:              # doctest: +SKIP
...     cluster.kubectl("get", "namespaces")

Run `python -m rig --help` for the command line. The package is explained in docs/rig.md.
"""

from __future__ import annotations

from rig.cluster import Cluster
from rig.errors import BuildError, MissingToolError, RigError, WaitError
from rig.image import PROBE_IMAGE
from rig.named import find
from rig.nodefiles import REGISTRY_NAME
from rig.starting import running

__all__ = [
    "PROBE_IMAGE",
    "REGISTRY_NAME",
    "BuildError",
    "Cluster",
    "MissingToolError",
    "RigError",
    "WaitError",
    "find",
    "running",
]
