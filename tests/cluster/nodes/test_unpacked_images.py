"""Containers run unpacked images: with the image's own files, loader and programs, with and without namespaces."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from cluster.nodes import refusing
from cluster.nodes.machines import Machine, end_of, running_machine, status_of, waits_for
from machine_limits import needs_namespaces
from navarch._base.movable_clock import MovableClock
from navarch._base.tasks import TaskSet
from navarch.cluster.embedded.cluster import EmbeddedCluster
from navarch.cluster.embedded.components import ComponentOptions
from navarch.cluster.nodes.images import Image, Images
from navarch.cluster.nodes.images.loader import ImagesWatch, load_image
from navarch.errors import ContainerError, ImageError
from navarch.k8s.core.v1 import ConfigMap, Container, Pod, PodSpec
from navarch.oci.documents import Descriptor, Platform
from navarch.oci.file_tree import FileTree
from navarch.oci.layout import Layout
from navarch.oci.unpacked_images import UnpackedImages
from navarch.testing.cluster import Cluster, in_process
from oci.tiny_images import add_image, add_index, with_programs

NAME = "registry.example.com/team/app"
_BARE = (sys.executable, str(Path(refusing.__file__)), sys.executable, "-I", "-S")
_SHOW = "echo $0 $*; echo $GREETING; pwd; cat /srv-of-image/word"
_SETTINGS: dict[str, Any] = {
    "entrypoint": ["/bin/sh", "-c", _SHOW],
    "cmd": ["first", "second"],
    "env": ["PATH=/usr/local/bin:/bin", "GREETING=of the image"],
    "working_dir": "/srv-of-image",
    "user": "65532:65532",
}


@pytest.fixture(scope="module")
def programs() -> FileTree:
    """A shell with a few programs."""
    tree = with_programs("sh", "cat", "sleep", "ls")
    tree.add_directory("srv-of-image", mode=0o777)
    tree.add_file("srv-of-image/word", b"from the image\n")
    tree.add_file("etc/passwd", b"root:x:0:0:root:/root:/bin/sh\napp:x:65532:65532::/home/app:/bin/sh\n")
    tree.add_link("var/run", "/run")
    tree.add_file("usr/local/bin/script", b"#!/bin/sh -e\necho script $*\n", mode=0o755)
    return tree


@pytest.fixture(params=[pytest.param("namespaces", marks=needs_namespaces), "bare"])
async def machine(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Machine]:
    """A process node on a machine with namespaces, and on one without."""
    if request.param == "bare":
        monkeypatch.setattr("navarch.cluster.nodes.shim.runtime._PYTHON", _BARE)
    async with in_process() as cluster, running_machine(cluster, tmp_path) as made:
        yield made


@pytest.fixture(scope="module")
def layout(tmp_path_factory: pytest.TempPathFactory) -> Layout:
    """The images of all tests."""
    return Layout.create(tmp_path_factory.mktemp("images"))


@pytest.fixture(scope="module")
def image(layout: Layout, programs: FileTree) -> Descriptor:
    """An image with programs and all settings."""
    return add_image(layout, programs, **_SETTINGS)


def _load(machine: Machine, layout: Layout, image: Descriptor, name: str = f"{NAME}:v1") -> Image:
    """Loads the image into a folder that containers do not see otherwise."""
    return load_image(machine.images, machine.folder / "images", layout, image, name)


def _names(root: str) -> list[str]:
    return [each.name for each in Path(root, "srv-of-image").iterdir()]


def _container(**fields: Any) -> Container:
    return Container(**{"name": "main", "image": f"{NAME}:v1", "image_pull_policy": "Never", **fields})


async def test_entrypoint_runs_with_files_and_settings_of_the_image(
    machine: Machine, layout: Layout, image: Descriptor
) -> None:
    """Entrypoint, command, variables and working directory are the image's; the status names the digest."""
    index = add_index(layout, image)
    _load(machine, layout, index)
    pod = await machine.ended(_container())
    lines = (await machine.log(pod)).splitlines()
    assert lines[:2] == ["first second", "of the image"]
    assert lines[2].endswith("/srv-of-image")
    assert lines[3] == "from the image"
    assert status_of(pod).image_id == f"{NAME}@{index.digest}"
    for number, digest in enumerate((index.digest, image.digest)):
        pod = await machine.ended(_container(image=f"{NAME}@{digest}"), name=f"digest-{number}")
        assert end_of(pod).exit_code == 0


async def test_command_args_and_variables_of_the_pod_come_first(
    machine: Machine, layout: Layout, image: Descriptor
) -> None:
    """`args` replace the command of the image, `command` the entrypoint too; `env` and `workingDir` replace its settings."""
    _load(machine, layout, image)
    given = _container(args=["other"], env=[{"name": "GREETING", "value": "of the pod"}])
    pod = await machine.ended(given, name="args")
    assert (await machine.log(pod)).splitlines()[:2] == ["other", "of the pod"]
    command = _container(command=["script", "$(GREETING)"], env=[{"name": "GREETING", "value": "expanded"}])
    pod = await machine.ended(command, name="command")
    assert await machine.log(pod) == "script expanded\n"
    placed = _container(command=["/bin/sh", "-c", "pwd; echo $HOME"], working_dir="/usr/local")
    pod = await machine.ended(placed, name="placed")
    folder, home = (await machine.log(pod)).splitlines()
    assert folder.endswith("/usr/local")
    assert home.endswith("/home/app")


async def test_programs_use_loader_and_libraries_of_the_image(
    machine: Machine, layout: Layout, image: Descriptor
) -> None:
    """No file that a program has mapped is the machine's."""
    loaded = _load(machine, layout, image)
    pod = await machine.ended(_container(command=["cat", "/proc/self/maps"]))
    mapped = {line.split()[5] for line in (await machine.log(pod)).splitlines() if len(line.split()) > 5}
    files = sorted(path.removeprefix(loaded.root) for path in mapped if path.startswith("/"))
    assert "/bin/cat" in files
    assert any("/libc" in path for path in files)
    if not machine.shim.is_isolated:
        assert all(path.startswith(loaded.root) for path in mapped if path.startswith("/"))


async def test_exec_finds_programs_of_the_image_and_no_others(
    machine: Machine, layout: Layout, image: Descriptor, programs: FileTree
) -> None:
    """`kubectl exec` and probes run programs of the image; one that only the machine has is not found."""
    _load(machine, layout, image)
    probe = {"exec": {"command": ["script"]}, "periodSeconds": 1}
    pod = await machine.run(_container(command=["sleep", "1000"], readiness_probe=probe))
    assert await machine.output(pod, "script", "a", "b") == "script a b\n"
    assert await machine.output(pod, "cat", "/srv-of-image/word") == "from the image\n"
    with pytest.raises(Exception, match=r'exec: "env": executable file not found in \$PATH'):
        await machine.output(pod, "env")


async def test_volumes_hosts_and_names_are_there(machine: Machine, layout: Layout, image: Descriptor) -> None:
    """Volumes are at their paths, also below links of the image; /etc/hosts has the pod's name."""
    _load(machine, layout, image)
    await machine.cluster.create(ConfigMap(name="settings", data={"size": "7"}))
    mounts = [
        {"name": "settings", "mountPath": "/var/run/secrets/example.com"},
        {"name": "data", "mountPath": "/data"},
    ]
    script = "cat /var/run/secrets/example.com/size; echo; echo kept > /data/a; cat /data/a; cat /etc/hosts"
    pod = await machine.ended(
        _container(command=["sh", "-c", script], volume_mounts=mounts),
        volumes=[{"name": "settings", "configMap": {"name": "settings"}}, {"name": "data", "emptyDir": {}}],
    )
    said = await machine.log(pod)
    assert said.startswith("7\nkept\n")
    assert f"{pod.status.pod_ip}\tpod" in said


async def test_container_changes_nothing_of_the_image(machine: Machine, layout: Layout, image: Descriptor) -> None:
    """What a container writes is not in the image, which other containers run too."""
    loaded = _load(machine, layout, image)
    script = "cd /srv-of-image; (echo changed > new; cat new || echo refused) 2> /dev/null"
    pod = await machine.ended(_container(command=["sh", "-c", script]))
    assert await machine.log(pod) == ("changed\n" if machine.shim.is_isolated else "refused\n")
    assert _names(loaded.root) == ["word"]


async def test_image_without_command_is_reported(machine: Machine, layout: Layout, programs: FileTree) -> None:
    """A container without any command waits with CreateContainerConfigError."""
    _load(machine, layout, add_image(layout, programs))
    await machine.create(_container())
    pod = await machine.until(lambda pod: waits_for(pod) == "CreateContainerConfigError")
    state = status_of(pod).state
    assert state is not None
    assert state.waiting is not None
    assert "no command specified" in (state.waiting.message or "")


async def test_loaded_image_is_found_by_its_exact_name(machine: Machine, layout: Layout, image: Descriptor) -> None:
    """Another tag, repository or digest is not pulled; a container that waits starts once its image is loaded."""
    _load(machine, layout, image)
    others = [f"{NAME}:v2", "registry.example.com/app:v1", "app:v1", f"{NAME}@sha256:{'0' * 64}", NAME]
    for number, name in enumerate(others):
        await machine.create(_container(image=name, image_pull_policy="IfNotPresent"), name=f"other-{number}")
        await machine.until(lambda pod: waits_for(pod) == "ImagePullBackOff", name=f"other-{number}")
    _load(machine, layout, image, f"{NAME}:v2")
    await machine.until(lambda pod: status_of(pod).restart_count > 0, name="other-0")


async def test_other_architecture_and_hostile_layer_are_refused(machine: Machine, layout: Layout) -> None:
    """They are not loaded, and the images stay as they were."""
    before = [image.identity for image in machine.images]
    other = add_image(layout, FileTree(), platform=Platform(architecture="s390x"))
    with pytest.raises(ImageError, match="got one for linux/s390x"):
        _load(machine, layout, other)
    tree = FileTree()
    tree.add_file("a", b"")
    tree._entries["../../escaped"] = tree._entries.pop("a")
    with pytest.raises(ImageError, match="leaves it"):
        _load(machine, layout, add_image(layout, tree))
    assert [image.identity for image in machine.images] == before


@needs_namespaces
class TestWithNamespaces:
    """What only a container with a root file system of its own has."""

    @pytest.fixture
    async def machine(self, tmp_path: Path) -> AsyncIterator[Machine]:
        """A node on a machine with namespaces."""
        async with in_process() as cluster, running_machine(cluster, tmp_path) as made:
            yield made

    async def test_container_sees_the_image_alone(
        self, machine: Machine, layout: Layout, image: Descriptor, programs: FileTree
    ) -> None:
        """The root has what the image has, and what every container has."""
        _load(machine, layout, image)
        pod = await machine.ended(_container(command=["ls", "/"]))
        own = {path.split("/")[0] for path, _ in programs}
        assert set((await machine.log(pod)).split()) == own | {"dev", "proc", "sys"}

    async def test_read_only_root_file_system_is_not_written(
        self, machine: Machine, layout: Layout, image: Descriptor
    ) -> None:
        """With readOnlyRootFilesystem only volumes can be written to."""
        _load(machine, layout, image)
        script = "echo a > /tmp/a || echo refused; echo b > /data/b; cat /data/b"
        container = _container(
            command=["sh", "-c", script],
            security_context={"readOnlyRootFilesystem": True},
            volume_mounts=[{"name": "data", "mountPath": "/data"}],
        )
        pod = await machine.ended(container, volumes=[{"name": "data", "emptyDir": {}}])
        assert {"refused", "b"} < set((await machine.log(pod)).splitlines())
        assert "Read-only file system" in await machine.log(pod)

    async def test_static_programs_and_children_run(self, machine: Machine, layout: Layout, image: Descriptor) -> None:
        """A program starts others of the image by their paths."""
        _load(machine, layout, image)
        pod = await machine.ended(_container(command=["sh", "-c", "/usr/local/bin/script x; /bin/cat word"]))
        assert await machine.log(pod) == "script x\nfrom the image\n"


async def test_user_of_the_image_satisfies_run_as_non_root(
    machine: Machine, layout: Layout, image: Descriptor, programs: FileTree
) -> None:
    """runAsNonRoot accepts an image with a numeric user, and refuses one of root."""
    _load(machine, layout, image)
    fields = {"command": ["sh", "-c", "true"], "security_context": {"runAsNonRoot": True}}
    assert end_of(await machine.ended(_container(**fields))).exit_code == 0
    _load(machine, layout, add_image(layout, programs, **{**_SETTINGS, "user": ""}), f"{NAME}:root")
    await machine.create(_container(**fields, image=f"{NAME}:root"), name="root")
    await machine.until(lambda pod: waits_for(pod) == "CreateContainerConfigError", name="root")


async def test_unused_image_is_removed(layout: Layout, tmp_path: Path) -> None:
    """An image that has lost its name is removed once no container holds it; a named one stays."""
    images, clock = Images(), MovableClock()
    old = load_image(images, tmp_path, layout, add_image(layout, FileTree(), cmd=["old"]), f"{NAME}:v1")
    new = load_image(images, tmp_path, layout, add_image(layout, FileTree(), cmd=["new"]), f"{NAME}:v2")
    images.remove(old.identity)
    unpacked, watch = UnpackedImages(tmp_path), TaskSet()
    watch.start(ImagesWatch(images, tmp_path, clock).run(), "images")
    try:
        with images.hold(old):
            await clock.advance(10)
            assert unpacked.roots() == {Path(old.root), Path(new.root)}
        async with asyncio.timeout(60):
            while Path(old.root) in unpacked.roots():
                await clock.advance(10)
        assert unpacked.roots() == {Path(new.root)}
    finally:
        await watch.stop()


def test_last_images_of_a_tag_are_found_by_their_digests(layout: Layout, tmp_path: Path) -> None:
    """A rollout can be undone after its tag has moved; the oldest of many images of a tag are dropped."""
    images = Images.load(tmp_path / "images.json")
    described = [add_image(layout, FileTree(), cmd=[str(number)]) for number in range(13)]
    for each in described:
        load_image(images, tmp_path / "images", layout, each, f"{NAME}:v1")
    again = Images.load(tmp_path / "images.json")
    assert again.find(f"{NAME}:v1").args == ("12",)
    assert again.find(f"{NAME}:v1@{described[2].digest}").args == ("2",)
    with pytest.raises(ContainerError, match="not found"):
        again.find(f"{NAME}@{described[1].digest}")
    load_image(images, tmp_path / "images", layout, described[5], f"{NAME}:v1")
    assert [image.version for image in images if described[5].digest in image.digests] == ["v1"]


async def test_embedded_cluster_loads_an_image(layout: Layout, image: Descriptor) -> None:
    """A test gives an image to its cluster, also before the nodes are up, and runs it; nothing is left of it."""
    async with EmbeddedCluster(components=ComponentOptions(nodes=1)) as embedded:
        assert await embedded.load_image(layout, image, f"{NAME}:v1") == f"{NAME}@{image.digest}"
        cluster = Cluster(embedded.client(), embedded)
        spec = PodSpec(containers=[_container()], restart_policy="Never", automount_service_account_token=False)
        await cluster.create(Pod(name="pod", spec=spec))
        pod = await cluster.until(Pod, "pod", lambda pod: pod.status.phase == "Succeeded", timeout=60)
        assert status_of(pod).image_id == f"{NAME}@{image.digest}"
