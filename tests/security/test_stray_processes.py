"""No process outlives its container or its node, whatever it does to hide: another session, an empty environment."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cluster.nodes.machines import Machine, long_while, processes_with, running_machine, shell, sleeping
from navarch.k8s.core.v1 import Pod
from navarch.testing.cluster import in_process
from security import bare_kernel

_OWN_PYTHON = (sys.executable, "-I", "-S")
_WITHOUT = (sys.executable, str(Path(bare_kernel.__file__)))
_KINDS = {
    "as-started": _OWN_PYTHON,
    "no-namespaces": (*_WITHOUT, "unshare", "--", *_OWN_PYTHON),
    "no-pidfd-getfd-no-namespaces": (*_WITHOUT, "pidfd_getfd", "unshare", "--", *_OWN_PYTHON),
}
_HIDDEN = "setsid env -i"
"""Runs a program in another session and without a variable."""
_STRAYS = (
    "({hidden} sleep {seconds} &)",
    "({hidden} sh -c '{hidden} sleep {seconds} & sleep {seconds}' &)",
    "(({hidden} sh -c '({hidden} sleep {seconds} &)') &)",
)


@pytest.fixture(params=[pytest.param(kind, marks=[pytest.mark.long] if "pidfd" in kind else []) for kind in _KINDS])
async def machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> AsyncIterator[Machine]:
    """A process node whose kernel allows its runtime what the name of its kind says."""
    monkeypatch.setattr("navarch.cluster.nodes.shim.runtime._PYTHON", _KINDS[request.param])
    async with in_process() as cluster, running_machine(cluster, tmp_path) as made:
        yield made


def strays(seconds: str) -> str:
    """A script that leaves four processes behind."""
    return "; ".join(each.format(hidden=_HIDDEN, seconds=seconds) for each in _STRAYS)


async def until_sleeping(machine: Machine, seconds: str, count: int) -> None:
    async def number() -> int:
        return len(sleeping(seconds))

    await machine.cluster.eventually(number, lambda found: found == count, timeout=60, what=f"{count} that sleep")


async def test_strays_end_with_their_pod(machine: Machine) -> None:
    """A deleted pod leaves nothing behind; other pods run on."""
    seconds, other = long_while(), long_while()
    await machine.run(shell(f"({_HIDDEN} sleep {other} &); sleep {other}"), name="other")
    await machine.run(shell(f"{strays(seconds)}; sleep {seconds}"))
    await until_sleeping(machine, seconds, 5)
    await until_sleeping(machine, other, 2)
    await machine.cluster.client.delete(Pod, "pod")
    await machine.gone()
    await until_sleeping(machine, seconds, 0)
    await until_sleeping(machine, other, 2)


async def test_strays_end_with_the_first_process(machine: Machine) -> None:
    """A container that has ended runs nothing any more."""
    seconds = long_while()
    await machine.ended(shell(f"{strays(seconds)}; until [ $(pgrep -cxf 'sleep {seconds}') = 4 ]; do :; done"))
    assert sleeping(seconds) == []


async def test_strays_of_an_exec_end_with_their_pod(machine: Machine) -> None:
    """What an exec left behind belongs to the container."""
    seconds = long_while()
    pod = await machine.run(shell("sleep 1000"))
    assert await machine.output(pod, "sh", "-c", f"({strays(seconds)}) > /dev/null 2>&1; echo done") == "done\n"
    await until_sleeping(machine, seconds, 4)
    await machine.cluster.client.delete(Pod, "pod")
    await machine.gone()
    await until_sleeping(machine, seconds, 0)


async def test_strays_end_with_their_node(machine: Machine) -> None:
    """Also if the node is killed and cleans up nothing itself."""
    seconds = long_while()
    await machine.run(shell(f"{strays(seconds)}; sleep {seconds}"))
    await until_sleeping(machine, seconds, 5)
    await machine.node.kill()
    await until_sleeping(machine, seconds, 0)


@pytest.mark.parametrize("killed", [0, -1], ids=["first", "last"])
async def test_strays_end_with_any_process_of_the_runtime(machine: Machine, killed: int) -> None:
    """Whichever process of the node's runtime is killed, nothing of its containers is left."""
    seconds, runtime = long_while(), sorted(processes_with(str(machine.folder / "shim")))
    await machine.run(shell(f"{strays(seconds)}; sleep {seconds}"))
    await until_sleeping(machine, seconds, 5)
    os.kill(runtime[killed], signal.SIGKILL)
    await until_sleeping(machine, seconds, 0)
