"""What a node leaves in the kernel beyond its processes and their mounts: one bridge and one control group.

Both carry a name derived from the cluster's folder, so whoever knows the folder can remove them.
"""

from __future__ import annotations

import hashlib
import ipaddress
import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rig import folders
from rig.errors import RigError
from rig.locking import turn
from rig.process import CLEAN_ENVIRONMENT

POD_RANGES = ipaddress.IPv4Network("10.203.0.0/16")
CONTROL_GROUPS = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class Network:
    """A bridge and the pod addresses on it; the first is the machine's own, which is also the node's."""

    bridge: str
    subnet: ipaddress.IPv4Network

    @property
    def address(self) -> str:
        """The machine's address on the bridge."""
        return str(self.subnet[1])


def bridge_of(folder: Path) -> str:
    """Return the name of a cluster's bridge (an interface name has at most 15 characters)."""
    return f"nvrig-{_tag(folder)}"


def control_group_of(folder: Path) -> str:
    """Return the name of the control group that all pods of a cluster are in."""
    return f"navarch-rig-{_tag(folder)}"


def make_network(folder: Path) -> Network:
    """Make the bridge with an address range that no other interface of this machine has.

    It has no route to anywhere and nothing is translated: a pod reaches other pods and this machine, nothing else.
    """
    with turn(folders.cache() / ".network.lock"):  # from finding a free range to taking it
        network = Network(bridge_of(folder), find_free_range(_ranges_in_use()))
        _ip("link", "add", network.bridge, "type", "bridge")
        _ip("address", "add", f"{network.address}/{network.subnet.prefixlen}", "dev", network.bridge)
    _ip("link", "set", network.bridge, "up")
    return network


def find_free_range(used: list[ipaddress.IPv4Network]) -> ipaddress.IPv4Network:
    """Return the first /24 of ours that overlaps with none in use."""
    for candidate in POD_RANGES.subnets(new_prefix=24):
        if not any(candidate.overlaps(other) for other in used):
            return candidate
    raise RigError(f"every address range in {POD_RANGES} is in use on this machine")


def make_control_group(folder: Path) -> str:
    """Make the control group in every hierarchy (one on cgroup v2, one per controller on v1)."""
    name = control_group_of(folder)
    for hierarchy in _hierarchies():
        (hierarchy / name).mkdir(exist_ok=True)
    return name


def remove(folder: Path) -> None:
    """Remove bridge and control group of a cluster, if they exist; raises OSError while processes are in it."""
    if (Path("/sys/class/net") / bridge_of(folder)).exists():
        _ip("link", "delete", bridge_of(folder))
    for hierarchy in _hierarchies():
        group = hierarchy / control_group_of(folder)
        if group.is_dir():
            _remove_group(group)


def _remove_group(group: Path) -> None:
    """Remove a control group with those below it; its files are the kernel's and go with it."""
    for child in group.iterdir():
        if child.is_dir():
            _remove_group(child)
    group.rmdir()


def _hierarchies() -> Iterator[Path]:
    if (CONTROL_GROUPS / "cgroup.controllers").exists():
        yield CONTROL_GROUPS
    else:
        yield from (path for path in CONTROL_GROUPS.glob("*") if path.is_dir() and not path.is_symlink())


def _ranges_in_use() -> list[ipaddress.IPv4Network]:
    interfaces = json.loads(_ip("-json", "-4", "address", "show"))
    return [
        ipaddress.IPv4Network(f"{address['local']}/{address['prefixlen']}", strict=False)
        for interface in interfaces
        for address in interface.get("addr_info", ())
    ]


def _ip(*arguments: str) -> str:
    done = subprocess.run(["ip", *arguments], env=CLEAN_ENVIRONMENT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RigError(f"ip {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout


def _tag(folder: Path) -> str:
    return hashlib.sha256(str(folder).encode()).hexdigest()[:8]
