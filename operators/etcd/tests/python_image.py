"""An image with this machine's Python, for the rig's node: there is no registry to pull one from."""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import rig
from rig.image import write_image
from rig.nodefiles import CONTAINERD_SOCKET

NAME = "navarch.test/python:1"
_LEFT_OUT = re.compile(r"/(test|tests|site-packages|idlelib|tkinter|ensurepip|lib2to3|__pycache__|config-3[^/]*)(/|$)")


def give_python_to(cluster: rig.Cluster, folder: Path) -> None:
    """The node of the cluster can run `NAME` from now on, whose Python is where that of `python:3` is."""
    archive = write_image(folder / "python.tar", _layer(), NAME, {"Env": ["PATH=/usr/local/bin"]})
    imports = ["ctr", "--address", CONTAINERD_SOCKET, "--namespace=k8s.io", "images", "import", str(archive)]
    inside = ["nsenter", f"--target={_process_1(cluster)}", "--mount", "--pid"]
    subprocess.run([*inside, *imports], check=True, capture_output=True, timeout=180)


def _process_1(cluster: rig.Cluster) -> int:
    """Of the node: that which was started with its folder, and not what has started it."""
    scratch = str(cluster.folder / "scratch").encode()
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # a process that has ended meanwhile
            message = (folder / "cmdline").read_bytes().split(b"\0")
            if scratch in message and message[0] != b"unshare":
                return int(folder.name)
    raise AssertionError(f"expected a process that was started with {scratch!r}, got none")


def _layer() -> bytes:
    """The interpreter, its library, and the shared libraries of both, each at its own place."""
    program = Path(sys.executable).resolve()
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", dereference=True) as archive:
        library = Path(sys.base_prefix, "lib", f"python{sys.version_info.major}.{sys.version_info.minor}")
        archive.add(library, filter=_wanted)
        for path in {program, *_shared(program, *library.glob("lib-dynload/*.so"))}:
            archive.add(path)
        link = tarfile.TarInfo("usr/local/bin/python3")
        link.type, link.linkname = tarfile.SYMTYPE, str(program)
        archive.addfile(link)
    return buffer.getvalue()


def _wanted(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if _LEFT_OUT.search(f"/{entry.name}") else entry


def _shared(*programs: Path) -> Iterator[Path]:
    said = subprocess.run(["ldd", *map(str, programs)], check=False, capture_output=True, text=True).stdout
    return (Path(path) for path in set(re.findall(r"(/\S+) \(0x", said)))
