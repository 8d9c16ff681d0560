"""A Python program in an image from Debian's packages runs as a pod of the embedded cluster, and reaches its API server."""

from __future__ import annotations

import asyncio
import sys
from functools import partial
from pathlib import Path

import pytest

from cluster.nodes import refusing
from cluster.nodes.machines import end_of
from machine_limits import needs_namespaces
from navarch.client import connect
from navarch.cluster.embedded.cluster import EmbeddedCluster
from navarch.cluster.embedded.components import ComponentOptions
from navarch.cluster.embedded.https_front import ThreadedCluster
from navarch.k8s.core.v1 import Container, Pod, PodSpec
from navarch.oci.layout import Layout
from navarch.project.image.debian import DebianArchive, DebianOptions, base_packages, base_tree
from oci.tiny_images import MACHINE, add_image

pytestmark = pytest.mark.long
SUITE = "trixie"
NAME = "registry.example.com/python:1"
SECONDS = 60.0
_BARE = (sys.executable, str(Path(refusing.__file__)), sys.executable, "-I", "-S")
PROGRAM = """
import os, pathlib, ssl, sys, urllib.request
account = pathlib.Path("/var/run/secrets/kubernetes.io/serviceaccount")
trusted = ssl.create_default_context(cafile=account / "ca.crt")
address = f"https://{os.environ['KUBERNETES_SERVICE_HOST']}:{os.environ['KUBERNETES_SERVICE_PORT']}/version"
asked = urllib.request.Request(address, headers={"Authorization": f"Bearer {(account / 'token').read_text()}"})
with urllib.request.urlopen(asked, context=trusted) as answer:
    assert b"gitVersion" in answer.read()
libraries = {line.split()[5] for line in open("/proc/self/maps") if "/libc.so" in line or "/ld-linux" in line}
assert len({path.partition("/usr/lib/")[0] for path in libraries}) == 1, libraries
print(sys.version_info[:2], sys.prefix, file=open("/dev/termination-log", "w"))
"""


@pytest.fixture(scope="module")
def layout(tmp_path_factory: pytest.TempPathFactory) -> Layout:
    """A layout with the base of operators as an image."""

    async def packages() -> list[Path]:
        async with DebianArchive(DebianOptions(suite=SUITE), tmp_path_factory.mktemp("cache")) as archive:
            return await archive.fetch(await archive.resolve(base_packages(SUITE), MACHINE.architecture))

    layout = Layout.create(tmp_path_factory.mktemp("layout"))
    tree = base_tree(asyncio.run(packages()))
    layout.tag(NAME, add_image(layout, tree, entrypoint=["/usr/local/bin/python3"], user="65532:65532"))
    return layout


@pytest.mark.timeout(300)
@pytest.mark.parametrize("bare", [pytest.param(False, marks=needs_namespaces), True])
async def test_python_of_the_image_reaches_the_api_server(
    layout: Layout, monkeypatch: pytest.MonkeyPatch, bare: bool
) -> None:
    """It has its own interpreter and libraries, a read-only root, its ServiceAccount and the trust of the cluster."""
    if bare:
        monkeypatch.setattr("navarch.cluster.nodes.shim.runtime._PYTHON", _BARE)
    with ThreadedCluster(partial(EmbeddedCluster, components=ComponentOptions(nodes=1))) as threaded:
        loading = threaded.submit(threaded.cluster.load_image(layout, layout.names[NAME], NAME))
        image = await asyncio.wrap_future(loading)
        container = Container(name="main", image=image, args=["-c", PROGRAM])
        container.security_context = {"runAsNonRoot": True, "readOnlyRootFilesystem": True}  # type: ignore[assignment] # as in YAML
        async with connect(threaded.access.config()) as client:
            await client.create(Pod(name="pod", spec=PodSpec(containers=[container], restart_policy="Never")))
            limit = client.clock.monotonic() + SECONDS
            while (pod := await client.get(Pod, "pod")).status.phase not in {"Succeeded", "Failed"}:
                assert client.clock.monotonic() < limit, f"expected the pod to end, got {pod!r}"
                await client.clock.sleep(0.1)
    ended = end_of(pod)
    assert ended.exit_code == 0, ended
    assert (ended.message or "").startswith("(3, 13) ")
    assert (ended.message or "").endswith("/usr\n")
