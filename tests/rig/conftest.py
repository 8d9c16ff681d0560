"""What the rig's tests share."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import rig
from rig import traces

GO = """#!/bin/sh
if [ "$1" = env ]; then echo go{version}; exit 0; fi
echo "$@" >> {calls}
while [ "$1" != -o ]; do shift; done
{action}
"""
"""A stand-in for the Go command: notes each call and does `action`, in which $2 is the output file."""


class FakeGo:
    """Puts a stand-in for `go` on PATH and remembers how it was called."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.calls_file = folder / "calls"

    def install(self, action: str = 'echo program > "$2"', version: str = "1.26.8") -> None:
        self.folder.mkdir(exist_ok=True)
        program = self.folder / "go"
        program.write_text(GO.format(version=version, calls=self.calls_file, action=action))
        program.chmod(0o755)

    @property
    def calls(self) -> list[str]:
        return self.calls_file.read_text().splitlines() if self.calls_file.exists() else []


@pytest.fixture
def fake_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeGo:
    """A fake Go command, and a cache folder of its own."""
    go = FakeGo(tmp_path / "bin")
    monkeypatch.setenv("PATH", f"{go.folder}:/usr/bin:/bin")
    monkeypatch.setenv("NAVARCH_CACHE", str(tmp_path / "cache"))
    return go


@pytest.fixture(scope="session")
def node_cluster() -> Iterator[rig.Cluster]:
    """One cluster with a node and a registry for all tests that do not harm it."""
    with rig.running(node=True, registry=True) as cluster:
        yield cluster


@pytest.fixture
def leftovers() -> Callable[[Path], list[str]]:
    """Return a function that lists whatever a stopped cluster has left on this machine."""
    return find_leftovers


def find_leftovers(folder: Path) -> list[str]:
    found = [f"folder {folder}"] if folder.exists() else []
    found += [f"process {command}" for command in _commands() if str(folder) in command]
    found += [f"mount {line}" for line in Path("/proc/mounts").read_text().splitlines() if str(folder) in line]
    for interface in (traces.bridge_of(folder), traces.port_of(folder)):
        found += [f"interface {interface}"] if (Path("/sys/class/net") / interface).exists() else []
    group = traces.control_group_of(folder)
    # Unlike a glob, a walk passes over what goes while it is under way.
    found += [f"control group {place}/{group}" for place, groups, _ in os.walk("/sys/fs/cgroup") if group in groups]
    return found


def _commands() -> list[str]:
    commands = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            commands.append(file.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue  # it ended while we looked
    return commands
