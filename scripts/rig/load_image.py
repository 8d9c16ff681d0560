"""`load_image`: gives an image to the node of a running cluster."""

from __future__ import annotations

import subprocess
from contextlib import suppress
from pathlib import Path

from rig.cluster import Cluster
from rig.errors import RigError
from rig.nodefiles import CONTAINERD_SOCKET


def load_image(cluster: Cluster, archive: Path) -> None:
    """Give an OCI archive to the node's containerd; pods run it under its name, with `imagePullPolicy: Never`."""
    imports = ["ctr", "--address", CONTAINERD_SOCKET, "--namespace=k8s.io", "images", "import", str(archive)]
    inside = ["nsenter", f"--target={_process_1(cluster)}", "--mount", "--pid"]
    done = subprocess.run([*inside, *imports], check=False, capture_output=True, text=True, timeout=180)
    if done.returncode != 0:
        raise RigError(f"containerd did not take {archive}: {done.stderr.strip()}")


def _process_1(cluster: Cluster) -> int:
    """Of the node: that which was started with its folder, and not what has started it."""
    scratch = str(cluster.folder / "scratch").encode()
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # a process that has ended meanwhile
            command = (folder / "cmdline").read_bytes().split(b"\0")
            if scratch in command and command[0] != b"unshare":
                return int(folder.name)
    raise RigError(f"expected a cluster with a node, got none whose process 1 was started with {scratch!r}")
