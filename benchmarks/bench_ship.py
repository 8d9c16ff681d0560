"""Images and pods of one operator: ours beside ko's, with the same operator on controller-runtime, and beside buildah's.

All images are for linux/amd64 and go to one registry on loopback, `navarch registry serve`. Ours and buildah's have the same base
of Debian packages; ko's has a minimal one: accounts and CA certificates. Packages come from the network, for all alike.

- images: the bytes of all packed layers, and whether two clones of one commit in two folders give one digest.
- change: one line of the reconciler is changed; the time until the new image and its SBOM are in the registry, with warm
  caches, in turns. What is sent is counted on the wire in one more round.
- cold: the time of a build with empty caches, with the base in the registry, beside buildah's from the scaffold's Dockerfile;
  and with the base from Debian packages, which are fetched too.
- pods: both operators' images are pushed to the rig's registry, and run in turns on its node, with one manifest: the time from
  the pod's being scheduled until it is ready, with the image there and with the image to pull, and its memory when it is idle.

About fifteen minutes. `BENCH_ROUNDS=1` for one round, `BENCH_PARTS=change` for one of the parts images, change, cold and pods,
the last of which needs root.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

import rig
from measuring import Report, Row, console, row, within
from rig import build, packages
from ship import buildah_peer, ko_peer, ours, pods
from ship.bases import PLATFORM, SUITE, push_bases
from ship.local_registry import CountedConnections, packed_size, serving

ROUNDS: Final = int(os.environ.get("BENCH_ROUNDS", "3"))
_KO: Final = "ko"
_STRIPPED: Final = "ko-stripped"
"""ko, told to leave out symbols and debug data, which it keeps by default."""
_BUILDAH: Final = "buildah"
_NAME: Final = "memcached-operator"
_CONTROLLER_RUNTIME: Final = "controller-runtime"
_LARGEST_MB, _MOST_KB, _IDLE_MB, _UP_SECONDS = 40, 100, 64, 20


class Shop(msgspec.Struct, frozen=True, kw_only=True):
    """What all parts use: a registry with the bases, the wheel of navarch, and a project of ours and of ko's."""

    folder: Path
    address: str
    wheels: Path
    project: ours.Project
    go_project: Path

    def image(self, tool: str) -> str:
        """Returns the name of the tool's image."""
        return f"{self.address}/{tool}/{_NAME}:latest"

    @property
    def go_base(self) -> str:
        """Returns the base of ko's images."""
        return f"{self.address}/static:latest"

    def push_ko(self, address: str) -> None:
        """Builds and pushes ko's image to a registry."""
        ko_peer.push(self.go_project, address, f"{_KO}/{_NAME}", base=self.go_base)


def main() -> None:
    """Measures everything, and reports."""
    chosen = (os.environ.get("BENCH_PARTS") or ",".join(_PARTS)).split(",")
    ko_peer.prepare()
    buildah_peer.prepare(console.print)
    report = Report("ship")
    with _shop() as shop:
        for name in chosen:
            with console.status(name):
                report.rows += _PARTS[name](shop)
    report.publish(in_part=True)


@contextmanager
def _shop() -> Iterator[Shop]:
    with tempfile.TemporaryDirectory(prefix="navarch-ship-") as place, console.status("bases and projects"):
        folder = Path(place)
        wheels = folder / "wheels"
        wheels.mkdir()
        ours.make_wheel(wheels)
        ko_peer.make_project(folder / "go")
        with serving(folder / "registry") as address:
            push_bases(address, folder / "bases")
            project = ours.make_project(folder / "ours", f"{address}/ours/{_NAME}:latest", f"debian:{SUITE}", wheels)
            yield Shop(folder=folder, address=address, wheels=wheels, project=project, go_project=folder / "go")


def _images(shop: Shop) -> list[Row]:
    """Pushes an image of each tool, ko's also without debug data, and builds ours in two more folders."""
    shop.project.build()
    shop.project.push()
    shop.push_ko(shop.address)
    ko_peer.push(shop.go_project, shop.address, f"{_STRIPPED}/{_NAME}", base=shop.go_base, is_stripped=True)
    _build_with_buildah(shop)
    buildah_peer.push(shop.folder / "storage", shop.image(_BUILDAH))
    tools = ("ours", _KO, _STRIPPED, _BUILDAH)
    sizes = {tool: packed_size(shop.image(tool), PLATFORM, shop.folder / "sizes") / 1e6 for tool in tools}
    clones = [shop.project.cloned(shop.folder / folder) for folder in ("clone", "elsewhere/another-clone")]
    digests = {each.build()["digest"] for each in clones}
    mine = sizes.pop("ours")
    return [
        within("packed image", "MB", mine, _LARGEST_MB, sizes),
        row("packed image, beside ko's", "MB", mine, sizes, 1.5, beside=_KO),
        within("two builds in two folders: digests", "digests", len(digests), 1, {}),
    ]


def _change(shop: Shop) -> list[Row]:
    """Changes a line for each tool, in turns; the first round, which fills the caches, is not counted."""
    project = shop.project

    def push_ours(address: str, number: int) -> None:
        project.change(number)
        project.build()
        project.push(f"{address}/ours/{_NAME}:latest")

    def push_ko(address: str, number: int) -> None:
        ko_peer.change(shop.go_project, number)
        shop.push_ko(address)

    tools: dict[str, Callable[[str, int], None]] = {"ours": push_ours, _KO: push_ko}
    taken: dict[str, list[float]] = {name: [] for name in tools}
    for number in range(ROUNDS + 1):
        for name, push in tools.items():
            seconds = _seconds(lambda push=push, number=number: push(shop.address, number))  # type: ignore[misc] # bound now
            taken[name] += [seconds] if number else []
    sent: dict[str, float] = {}
    for name, push in tools.items():
        with CountedConnections(shop.address) as connections:
            push(connections.address, ROUNDS + 1)
            sent[name] = connections.sent / 1e3
    best = {name: min(found) for name, found in taken.items()}
    return [
        row("one changed line until the image is pushed: time", "s", best["ours"], {_KO: best[_KO]}, 0.5),
        within("one changed line until the image is pushed: sent", "KB", sent["ours"], _MOST_KB, {_KO: sent[_KO]}),
    ]


def _cold(shop: Shop) -> list[Row]:
    """Builds with empty caches, in turns."""
    base = f"{shop.address}/python:latest"
    on_registry = ours.make_project(shop.folder / "on-registry", f"{shop.address}/ours/cold:latest", base, shop.wheels)

    def build_ours(project: ours.Project) -> float:
        project.without_cache()
        return _seconds(project.build)

    taken: Mapping[str, list[float]] = {"ours": [], "packages": [], _BUILDAH: []}
    for _ in range(ROUNDS):
        taken["ours"].append(build_ours(on_registry))
        taken["packages"].append(build_ours(shop.project))
        taken[_BUILDAH].append(_build_with_buildah(shop))
    best = {name: min(found) for name, found in taken.items()}
    peers = {_BUILDAH: best[_BUILDAH]}
    return [
        row("build with empty caches, the base in the registry: time", "s", best["ours"], peers, 1.0),
        row("build with empty caches, the base from Debian packages: time", "s", best["packages"], peers, 1.0),
    ]


def _pods(shop: Shop) -> list[Row]:
    """Starts a rig that is built, and the pods of both operators on it, in turns; the first ones pull their images."""
    build.build()
    packages.ensure(console.print)
    began = time.perf_counter()
    with rig.running(node=True, registry=True) as cluster:
        up = time.perf_counter() - began
        assert cluster.registry is not None
        shop.project.build()
        shop.project.push(f"{cluster.registry}/ours/{_NAME}:latest")
        shop.push_ko(cluster.registry)
        pods.install(cluster)
        images = {
            "ours": f"{rig.REGISTRY_NAME}/ours/{_NAME}",
            _CONTROLLER_RUNTIME: f"{rig.REGISTRY_NAME}/{_KO}/{_NAME}",
        }
        pulled = {name: pods.start(cluster, image).seconds for name, image in images.items()}
        started: dict[str, list[pods.StartedPod]] = {name: [] for name in images}
        for number in range(ROUNDS):
            for name, image in images.items():
                started[name].append(pods.start(cluster, image, is_idle=number == 0))
    seconds = {name: min(each.seconds for each in found) for name, found in started.items()}
    memory = {name: found[0].memory_mb for name, found in started.items()}
    mine, mine_pulled, mine_memory = (each.pop("ours") for each in (seconds, pulled, memory))
    return [
        row("pod scheduled until ready: time", "s", mine, seconds, 2.0),
        row("pod scheduled until ready, with its image to pull: time", "s", mine_pulled, pulled, None),
        within("idle memory of the pod", "MB", mine_memory, _IDLE_MB, memory),
        within("rig with node, DNS, proxy and registry: time until it is up", "s", up, _UP_SECONDS, {}),
    ]


def _build_with_buildah(shop: Shop) -> float:
    """Returns the seconds of a build without a cache."""
    project = ours.Project(folder=shop.folder / "buildah", image=shop.image(_BUILDAH), environment={})
    if not project.folder.exists():
        project = shop.project.cloned(project.folder)
        buildah_peer.write_dockerfile(project, shop.address)
    storage = shop.folder / "storage"
    return _seconds(lambda: buildah_peer.build_image(project, storage, shop.wheels, shop.image(_BUILDAH)))


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


_PARTS: Final[dict[str, Callable[[Shop], list[Row]]]] = {
    "images": _images,
    "change": _change,
    "cold": _cold,
    "pods": _pods,
}


if __name__ == "__main__":
    main()
