"""`navarch image load` gives images to a cluster, from layouts and archives."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.programs import Program
from navarch.client import Client, connect
from navarch.k8s.core.v1 import Container, Pod, PodSpec
from navarch.oci.archive import write_archive
from navarch.oci.documents import Platform
from navarch.oci.layout import Layout
from navarch.oci.reference import Reference
from navarch.project.project import Project
from oci.tiny_images import add_image, with_programs
from project.small_project import write_project

NAME = "registry.example.com/team/app:v1"
SECONDS = 60.0


@pytest.fixture
def made(program: Program) -> Program:
    """A cluster that was made, and does not run."""
    (program.root / "dev").mkdir(parents=True)
    return program


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """A layout with an image that has a shell."""
    layout = Layout.create(tmp_path / "layout")
    layout.tag(NAME, add_image(layout, with_programs("sh", "cat"), entrypoint=["/bin/sh"]))
    return layout


def test_image_is_loaded_listed_and_removed(made: Program, layout: Layout, tmp_path: Path) -> None:
    """An archive and a layout give the same image; `--as` gives it another name."""
    loaded = made.json("image", "load", f"oci:{layout.folder}", "--cluster", "dev")
    digest = layout.names[NAME].digest
    assert loaded == [{"image": NAME, "digest": digest, "cluster": "dev"}]
    write_archive(layout, layout.names[NAME], NAME, tmp_path / "image.tar")
    archive = ("image", "load", f"oci:{tmp_path / 'image.tar'}", "--cluster", "dev", "--as", "app:v2")
    assert made.json(*archive)[0]["digest"] == digest
    rows = {row["image"]: row for row in made.json("cluster", "image", "list", "--name", "dev")}
    assert rows[NAME]["from"] == rows["docker.io/library/app:v2"]["from"] == "loaded"
    assert made.run("cluster", "image", "remove", "app:v2", "--name", "dev").returncode == 0
    assert made.run("cluster", "image", "remove", NAME, "--name", "dev").returncode == 0
    assert not [row for row in made.json("cluster", "image", "list", "--name", "dev") if row["from"] == "loaded"]


def test_what_is_no_image_is_not_loaded(made: Program, layout: Layout, tmp_path: Path) -> None:
    """Errors are one sentence with the remedy, and the cluster keeps its images."""
    other = Layout.create(tmp_path / "other")
    other.tag("app:v1", add_image(other, with_programs(), platform=Platform(architecture="s390x")))
    unnamed = Layout.create(tmp_path / "unnamed")
    unnamed.tag("v1", add_image(unnamed, with_programs()))
    (tmp_path / "image.tar").write_bytes(b"rubbish")
    faults = {
        f"oci:{other.folder}": "got one for linux/s390x",
        f"oci:{unnamed.folder}": "give it one with --as NAME",
        f"oci:{tmp_path / 'absent'}": "expected an OCI layout or archive, got no file",
        f"oci:{tmp_path / 'image.tar'}": "expected a whole OCI archive",
    }
    for source, fault in faults.items():
        result = made.run("image", "load", source, "--cluster", "dev")
        assert (result.returncode, fault in result.stderr) == (1, True), result.stderr
    result = made.run("image", "load", f"oci:{layout.folder}", "--cluster", "no-such")
    assert "there is no cluster 'no-such'" in result.stderr
    assert not [row for row in made.json("cluster", "image", "list", "--name", "dev") if row["from"] == "loaded"]


def test_image_of_the_project_is_loaded(made: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a source it is the built image, under its own name or another; before a build there is none."""
    root = tmp_path / "project"
    write_project(root)
    monkeypatch.chdir(root)
    assert "run: navarch image build" in made.run("image", "load", "--cluster", "dev").stderr
    layout = Layout.create(root / "dist" / "image")
    built = Project.find(root).settings.image
    layout.tag(str(Reference.parse(built)), add_image(layout, with_programs()))
    assert [row["image"] for row in made.json("image", "load", "--cluster", "dev")] == [str(Reference.parse(built))]
    assert [row["image"] for row in made.json("image", "load", NAME, "--cluster", "dev")] == [NAME]


async def test_running_cluster_runs_a_loaded_image(program: Program, layout: Layout) -> None:
    """A pod runs it at once, whatever its pull policy; it has its ServiceAccount, and its status has the digest."""
    program.run("cluster", "up", "--name", "dev")
    assert program.run("image", "load", f"oci:{layout.folder}", "--cluster", "dev").returncode == 0
    script = "cat /var/run/secrets/kubernetes.io/serviceaccount/namespace > /dev/termination-log"
    container = Container(name="main", image=NAME, image_pull_policy="Always", command=["sh", "-c", script])
    async with connect(program.kubeconfig()) as client:
        await client.create(Pod(name="once", spec=PodSpec(containers=[container], restart_policy="Never")))
        pod = await _ended(client)
    (status,) = pod.status.container_statuses or []
    assert status.image_id == f"{NAME.rpartition(':')[0]}@{layout.names[NAME].digest}"
    assert status.state is not None
    assert status.state.terminated is not None
    assert (status.state.terminated.exit_code, status.state.terminated.message) == (0, "default")


async def _ended(client: Client) -> Pod:
    limit = client.clock.monotonic() + SECONDS
    while (pod := await client.get(Pod, "once")).status.phase not in {"Succeeded", "Failed"}:
        assert client.clock.monotonic() < limit, f"expected the pod to end, got {pod!r}"
        await client.clock.sleep(0.05)
    return pod
