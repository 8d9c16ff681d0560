"""What a node leaves in the kernel beyond its processes and namespaces: one bridge and one control group.

Both carry a name derived from the cluster's folder, so whoever knows the folder can remove them. The bridge joins this
machine with the network namespace of the node, in which everything else is: pods, routes, kube-proxy's rules.
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

RANGES = ipaddress.IPv4Network("10.204.0.0/16")
CONTROL_GROUPS = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class Network:
    """The addresses of one cluster: a quarter each for the bridge, the pods and the services."""

    bridge: str
    addresses: ipaddress.IPv4Network

    @property
    def link(self) -> ipaddress.IPv4Network:
        """The range of the bridge."""
        return self._quarter(0)

    @property
    def pods(self) -> ipaddress.IPv4Network:
        """The range of the pods."""
        return self._quarter(1)

    @property
    def services(self) -> ipaddress.IPv4Network:
        """The range of the services."""
        return self._quarter(2)

    @property
    def machine(self) -> str:
        """The address of this machine on the bridge, where the API server listens."""
        return str(self.link[1])

    @property
    def node(self) -> str:
        """The node's address on the bridge."""
        return str(self.link[2])

    @property
    def dns(self) -> str:
        """The address of the service kube-dns."""
        return str(self.services[10])

    def _quarter(self, number: int) -> ipaddress.IPv4Network:
        return list(self.addresses.subnets(prefixlen_diff=2))[number]


def bridge_of(folder: Path) -> str:
    """Return the name of a cluster's bridge (an interface name has at most 15 characters)."""
    return f"nvrig-{_tag(folder)}"


def port_of(folder: Path) -> str:
    """Return the name of this machine's end of the cable between a cluster's bridge and its node."""
    return f"nvport-{_tag(folder)}"


def control_group_of(folder: Path) -> str:
    """Return the name of the control group that all pods of a cluster are in."""
    return f"navarch-rig-{_tag(folder)}"


def make_network(folder: Path) -> Network:
    """Make the bridge, with addresses that no other interface of this machine has, and the routes to the node.

    The routes stay when the node is gone: no packet to a pod or a service can take the machine's way to the world.
    """
    with turn(folders.cache() / ".network.lock"):  # from finding a free range to taking it
        network = Network(bridge_of(folder), find_free_range(_ranges_in_use()))
        _ip("link", "add", network.bridge, "type", "bridge")
        _ip("address", "add", f"{network.machine}/{network.link.prefixlen}", "dev", network.bridge)
    _ip("link", "set", network.bridge, "up")
    for destination in (network.pods, network.services):
        _ip("route", "add", str(destination), "via", network.node, "dev", network.bridge)
    return network


def attach_node(folder: Path, network: Network, process_1: int) -> None:
    """Lay a cable from the bridge into the network namespace of a process, which has no route but that one."""
    port = port_of(folder)
    _ip("link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", str(process_1))
    _ip("link", "set", port, "master", network.bridge, "up")
    _run(
        "nsenter",
        f"--net=/proc/{process_1}/ns/net",
        "ip",
        "-batch",
        "-",
        stdin=f"""\
link set lo up
address add {network.node}/{network.link.prefixlen} dev eth0
link set eth0 up
""",
    )


def find_free_range(used: list[ipaddress.IPv4Network]) -> ipaddress.IPv4Network:
    """Return the first /22 of ours that overlaps with none in use."""
    for candidate in RANGES.subnets(new_prefix=22):
        if not any(candidate.overlaps(other) for other in used):
            return candidate
    raise RigError(f"every address range in {RANGES} is in use on this machine")


def make_control_group(folder: Path) -> str:
    """Make the control group in every hierarchy (one on cgroup v2, one per controller on v1)."""
    name = control_group_of(folder)
    for hierarchy in _hierarchies():
        (hierarchy / name).mkdir(exist_ok=True)
    return name


def remove(folder: Path) -> None:
    """Remove bridge and control group of a cluster, if they exist; raises OSError while processes are in it."""
    for interface in (port_of(folder), bridge_of(folder)):
        _remove_interface(interface)
    for hierarchy in _hierarchies():
        group = hierarchy / control_group_of(folder)
        if group.is_dir():
            _remove_group(group)


def _remove_interface(name: str) -> None:
    interface = Path("/sys/class/net") / name
    try:
        if interface.exists():
            _ip("link", "delete", name)
    except RigError:
        if interface.exists():  # else the kernel was faster: the port goes with the node's namespace
            raise


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
    """Return the ranges of this machine's interfaces and of its routes, other clusters' among them."""
    interfaces = json.loads(_ip("-json", "-4", "address", "show"))
    addresses = [address for interface in interfaces for address in interface.get("addr_info", ())]
    routes = [route["dst"] for route in json.loads(_ip("-json", "-4", "route", "show"))]
    return [
        ipaddress.IPv4Network(each, strict=False)
        for each in (*(f"{address['local']}/{address['prefixlen']}" for address in addresses), *routes)
        if each != "default"
    ]


def _ip(*arguments: str) -> str:
    return _run("ip", *arguments)


def _run(*command: str, stdin: str | None = None) -> str:
    done = subprocess.run(
        command, input=stdin, env=CLEAN_ENVIRONMENT, capture_output=True, text=True, timeout=30, check=False
    )
    if done.returncode != 0:
        raise RigError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def _tag(folder: Path) -> str:
    return hashlib.sha256(str(folder).encode()).hexdigest()[:8]
