"""An embedded cluster, and the tests on it."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from navarch.cluster.embedded.cluster import EmbeddedCluster
from navarch.cluster.embedded.components import ComponentOptions
from navarch.cluster.embedded.https_front import ThreadedCluster
from navarch.cluster.nodes.images import Image
from navarch.k8s.core.v1 import Node
from rig.programs import KUBECTL
from upstream.programs import AGNHOST, TESTS
from upstream.results import Case, cases

__all__ = ["kubeconfig", "run"]

_SIMULATED = 3
_PROCESSES = 2
_WEB = ("httpd", "nginx", "nginx-new", "nautilus", "kitten")
"""Images of which a test wants that they serve something."""


def run(focus: str, skip: str, *, processes: bool, reports: Path) -> list[Case]:
    """The tests whose names match `focus` and not `skip`, on a cluster of their own, one after the other."""
    with kubeconfig(processes=processes) as path:
        subprocess.run(
            [
                TESTS.path,
                "--provider=skeleton",
                f"--kubeconfig={path}",
                f"--kubectl-path={KUBECTL.path}",
                f"--ginkgo.focus={focus}",
                f"--ginkgo.skip={skip}",
                "--ginkgo.no-color",
                "--ginkgo.timeout=6h",
                f"--report-dir={reports}",
                "--dump-logs-on-failure=false",
            ],
            check=False,
        )
    return cases(reports / "junit_01.xml")


@contextmanager
def kubeconfig(*, processes: bool) -> Iterator[Path]:
    """A cluster with two nodes whose pods are processes, or three whose pods are data, while the block lasts."""
    with (
        tempfile.TemporaryDirectory(prefix="navarch-upstream-") as folder,
        ThreadedCluster(_maker(Path(folder), processes=processes)) as cluster,
    ):
        cluster.submit(_until_ready(cluster.cluster, _PROCESSES if processes else _SIMULATED)).result()
        path = Path(folder) / "kubeconfig"
        path.write_bytes(cluster.access.kubeconfig_file())
        yield path


async def _until_ready(cluster: EmbeddedCluster, count: int) -> None:
    """Returns when so many nodes are ready; raises TimeoutError after a minute."""
    client = cluster.client()
    async with asyncio.timeout(60):
        while sum([_is_ready(node) async for node in client.list(Node)]) < count:
            await cluster.clock.sleep(0.2)


def _is_ready(node: Node) -> bool:
    return any(each.type == "Ready" and each.status == "True" for each in node.status.conditions or ())


def _maker(folder: Path, *, processes: bool) -> Callable[[], EmbeddedCluster]:
    if not processes:
        return lambda: EmbeddedCluster(components=ComponentOptions(simulated=_SIMULATED))
    folder.chmod(0o755)  # pods run as whoever they say
    program = Path(shutil.copy(AGNHOST.path, folder / "agnhost"))
    images = folder / "images.json"
    images.write_bytes(msgspec.json.encode(_images(str(program))))
    components = ComponentOptions(nodes=_PROCESSES, folder=folder / "machines", images=images)
    return lambda: EmbeddedCluster(components=components)


def _images(program: str) -> list[Image]:
    served = [Image(name=name, argv=(program, "test-webserver")) for name in _WEB]
    return [Image(name="agnhost", argv=(program,), args=("pause",)), *served]
