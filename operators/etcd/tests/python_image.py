"""An image with this machine's Python, for the rig's node: there is no registry to pull one from."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import rig
from navarch.oci.documents import ProcessConfig
from navarch.oci.file_tree import FileTree
from rig.image import write_image
from rig.load_image import load_image

NAME = "navarch.test/python:1"
_LEFT_OUT = re.compile(r"/(test|tests|site-packages|idlelib|tkinter|ensurepip|lib2to3|__pycache__|config-3[^/]*)(/|$)")


def give_python_to(cluster: rig.Cluster, folder: Path) -> None:
    """The node of the cluster can run `NAME` from now on, whose Python is where that of `python:3` is."""
    archive = write_image(folder / "python.tar", _tree(), NAME, ProcessConfig(env=["PATH=/usr/local/bin"]))
    load_image(cluster, archive)


def _tree() -> FileTree:
    """The interpreter, its library, and the shared libraries of both, each at its own place."""
    program = Path(sys.executable).resolve()
    tree = FileTree()
    library = Path(sys.base_prefix, "lib", f"python{sys.version_info.major}.{sys.version_info.minor}")
    files = {each for each in library.rglob("*") if each.is_file() and not _LEFT_OUT.search(str(each))}
    for path in {*files, program, *_shared(program, *library.glob("lib-dynload/*.so"))}:
        tree.add_file(str(path), path.read_bytes(), mode=path.stat().st_mode & 0o777)
    tree.add_link("usr/local/bin/python3", str(program))
    return tree


def _shared(*programs: Path) -> Iterator[Path]:
    said = subprocess.run(["ldd", *map(str, programs)], check=False, capture_output=True, text=True).stdout
    return (Path(path) for path in set(re.findall(r"(/\S+) \(0x", said)))
