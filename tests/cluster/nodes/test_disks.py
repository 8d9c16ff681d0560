"""A node reports a full disk, and retries."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from cluster.nodes.machines import Machine, end_of, is_ready, running_machine, shell
from navarch.testing.cluster import in_process

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("mount") is None, reason="a small disk takes a mount, and that takes root"
)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of one megabyte."""
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.fixture
async def small_machine(disk: Path) -> AsyncIterator[Machine]:
    """A node that has nothing but the small disk."""
    async with in_process() as cluster, running_machine(cluster, disk) as made:
        yield made


def _fill(disk: Path) -> Path:
    """Leaves nothing: to the last byte."""
    file = disk / "filler"
    with file.open("wb", buffering=0) as filler:
        size = 65536
        while size:
            try:
                filler.write(b"x" * size)
            except OSError:
                size //= 2
    return file


async def test_a_pod_waits_for_room(small_machine: Machine, disk: Path) -> None:
    """A failed write is reported as FailedMount, and the pod starts when the disk has room again."""
    filler = _fill(disk)
    await small_machine.create(shell("sleep 100"))
    assert "No space left on device" in await small_machine.noted("FailedMount")
    filler.unlink()
    await small_machine.until(is_ready)


async def test_output_that_has_no_room_is_lost_and_nothing_else(small_machine: Machine, disk: Path) -> None:
    """A container whose log cannot grow keeps running, and its end is reported."""
    script = "while test ! -e /data/end; do echo more output; done; exit 3"
    container = shell(script, volume_mounts=[{"name": "data", "mountPath": "/data"}])
    volumes = [{"name": "data", "emptyDir": {}}]
    pod = await small_machine.run(container, volumes=volumes, restart_policy="Never")
    await small_machine.cluster.eventually(lambda: _room(disk), lambda left: left < 20_000, timeout=60)
    (small_machine.pod_folder(pod) / "volumes" / "data" / "end").touch()
    ended = await small_machine.until(lambda pod: pod.status.phase == "Failed")
    assert end_of(ended).exit_code == 3


async def _room(disk: Path) -> int:
    found = os.statvfs(disk)
    return found.f_bavail * found.f_frsize
