"""Mounted volumes have the right content, are updated, and live as long as they should."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from cluster.nodes.machines import Machine, condition, shell, status_of
from machine_limits import needs_namespaces
from navarch.api import Quantity
from navarch.client import MergePatch
from navarch.cluster.nodes.shim.program.confined_directory import ConfinedDirectory
from navarch.cluster.nodes.volumes.atomic_writer import FileProjection, write_payload
from navarch.errors import ContainerError
from navarch.k8s.core.v1 import (
    ConfigMap,
    HostPathVolumeSource,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeSpec,
    Pod,
    Secret,
    VolumeResourceRequirements,
)


def _mount(path: str, name: str = "data", **fields: Any) -> list[dict[str, Any]]:
    return [{"name": name, "mountPath": path, **fields}]


def _is_there(path: str) -> bool:
    return Path(path).exists()


async def test_containers_share_an_empty_volume(machine: Machine) -> None:
    """An emptyDir begins empty, is at its path in each container, and is nowhere else on the machine."""
    pod = await machine.run(
        shell(
            "echo word > /data/deep/x || (mkdir /data/deep; echo word > /data/deep/x); sleep 100",
            "one",
            volume_mounts=_mount("/data"),
        ),
        shell("sleep 100", "two", volume_mounts=_mount("/var/lib/other/place")),
        volumes=[{"name": "data", "emptyDir": {}}],
    )
    found = await machine.cluster.eventually(
        lambda: machine.output(pod, "cat", "/var/lib/other/place/deep/x", container="two"), bool
    )
    assert found == "word\n"
    assert not _is_there("/var/lib/other")


@needs_namespaces
async def test_what_a_container_writes_elsewhere_stays_its_own(machine: Machine) -> None:
    """A container sees the machine's folders, and its writes there are not seen outside."""
    pod = await machine.run(shell("echo mine > /etc/navarch-test; echo mine > /navarch-test; sleep 100"))
    await machine.shows(pod, "mine\nmine\n", "cat", "/etc/navarch-test", "/navarch-test")
    assert not _is_there("/etc/navarch-test")
    assert not _is_there("/navarch-test")


async def test_files_of_config_maps_and_secrets_follow_their_objects(machine: Machine) -> None:
    """Keys are files, chosen keys are at their paths, and a change replaces all files at once."""
    await machine.cluster.create(ConfigMap(name="settings", data={"a": "1", "b": "2"}))
    await machine.cluster.create(Secret(name="hidden", data={"password": b"s3cret"}))
    pod = await machine.run(
        shell("sleep 100", volume_mounts=[*_mount("/etc/settings", "settings"), *_mount("/hidden", "hidden")]),
        volumes=[
            {"name": "settings", "configMap": {"name": "settings"}},
            {
                "name": "hidden",
                "secret": {"secretName": "hidden", "items": [{"key": "password", "path": "deep/word", "mode": 0o400}]},
            },
        ],
    )
    assert await machine.output(pod, "cat", "/etc/settings/a", "/etc/settings/b", "/hidden/deep/word") == "12s3cret"
    assert await machine.output(pod, "stat", "-Lc", "%a", "/hidden/deep/word") == "400\n"
    await machine.cluster.client.patch(ConfigMap, "settings", MergePatch({"data": {"a": "3", "b": None, "c": "4"}}))
    await machine.cluster.eventually(
        lambda: machine.output(pod, "sh", "-c", "cd /etc/settings; ls; cat a c"),
        lambda text: text == "a\nc\n34",
        what="the files to follow",
    )


async def test_a_pod_waits_for_what_it_mounts(machine: Machine) -> None:
    """A missing source is reported as FailedMount, and the pod starts once it exists."""
    await machine.create(
        shell("cat /etc/late/word; sleep 100", volume_mounts=_mount("/etc/late")),
        volumes=[{"name": "data", "configMap": {"name": "late"}}],
    )
    note = await machine.noted("FailedMount")
    assert note == 'MountVolume.SetUp failed for volume "data" : configmap "late" not found'
    await machine.cluster.create(ConfigMap(name="late", data={"word": "here"}))
    await machine.until(lambda pod: condition(pod, "Ready").status == "True")


async def test_a_pod_can_read_about_itself(machine: Machine) -> None:
    """The downward API writes files, also of labels that change while the pod runs."""
    items = [
        {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}},
        {"path": "cpu", "resourceFieldRef": {"containerName": "main", "resource": "limits.cpu", "divisor": "1m"}},
    ]
    pod = await machine.run(
        shell("sleep 100", volume_mounts=_mount("/about"), resources={"limits": {"cpu": "250m"}}),
        volumes=[{"name": "data", "downwardAPI": {"items": items}}],
    )
    assert await machine.output(pod, "cat", "/about/labels", "/about/cpu") == 'app="pod"250'
    await machine.cluster.client.patch(Pod, "pod", MergePatch({"metadata": {"labels": {"more": "yes"}}}))
    await machine.cluster.eventually(
        lambda: machine.output(pod, "cat", "/about/labels"),
        lambda text: text == 'app="pod"\nmore="yes"',
        what="the labels to follow",
    )


async def test_a_pod_has_the_token_of_its_account(machine: Machine) -> None:
    """The mounted token authenticates at the API server, bound to the pod."""
    await machine.cluster.create(ConfigMap(name="kube-root-ca.crt", data={"ca.crt": "authority"}))
    pod = await machine.run(shell("sleep 100"), automount_service_account_token=True)
    folder = "/var/run/secrets/kubernetes.io/serviceaccount"
    token = await machine.output(pod, "cat", f"{folder}/token")
    assert token.count(".") == 2
    assert await machine.output(pod, "cat", f"{folder}/namespace", f"{folder}/ca.crt") == "defaultauthority"


async def test_the_token_of_a_pod_with_a_user_is_for_that_user(machine: Machine) -> None:
    """No other user can read the token."""
    sources = [{"serviceAccountToken": {"path": "token"}}]
    pod = await machine.run(
        shell("sleep 100", volume_mounts=_mount("/mine")),
        volumes=[{"name": "data", "projected": {"sources": sources}}],
        security_context={"runAsUser": os.getuid()},
    )
    shown = await machine.output(pod, "stat", "-L", "-c", "%a %u", "/mine/token")
    assert shown.split() == ["600", str(os.getuid())]


async def test_a_part_of_a_volume_is_mounted(machine: Machine) -> None:
    """subPath and subPathExpr mount one folder or file of a volume, read-only if requested."""
    await machine.cluster.create(ConfigMap(name="settings", data={"a": "1"}))
    pod = await machine.run(
        shell(
            "echo x > /one/file; echo y > /fixed/file; sleep 100",
            env=[{"name": "WHO", "value": "me"}],
            volume_mounts=[
                *_mount("/one", subPathExpr="users/$(WHO)"),
                *_mount("/all"),
                *_mount("/etc/app/a.conf", "settings", subPath="a", readOnly=True),
                *_mount("/fixed", readOnly=True),
            ],
        ),
        volumes=[{"name": "data", "emptyDir": {}}, {"name": "settings", "configMap": {"name": "settings"}}],
    )
    await machine.shows(pod, "x\n1", "cat", "/all/users/me/file", "/etc/app/a.conf")
    await machine.said(pod, "Read-only file system")


async def test_a_claim_outlives_its_pods(machine: Machine) -> None:
    """The next pod finds the data that a pod wrote to its claim."""
    place = machine.folder / "disk"
    spec = PersistentVolumeSpec(
        capacity={"storage": Quantity("1Gi")},
        access_modes=["ReadWriteOnce"],
        host_path=HostPathVolumeSource(path=str(place), type="DirectoryOrCreate"),
    )
    await machine.cluster.create(PersistentVolume(name="disk", spec=spec))
    wanted = PersistentVolumeClaimSpec(
        access_modes=["ReadWriteOnce"],
        volume_name="disk",
        resources=VolumeResourceRequirements(requests={"storage": Quantity("1Gi")}),
    )
    await machine.cluster.create(PersistentVolumeClaim(name="disk", spec=wanted))
    bound = MergePatch({"status": {"phase": "Bound"}})
    await machine.cluster.client.patch(PersistentVolumeClaim, "disk", bound, subresource="status")
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "disk"}}]
    await machine.ended(shell("echo kept > /data/x", volume_mounts=_mount("/data")), name="first", volumes=volumes)
    pod = await machine.ended(shell("cat /data/x", volume_mounts=_mount("/data")), name="second", volumes=volumes)
    assert await machine.log(pod) == "kept\n"


async def test_a_host_path_of_the_wrong_kind_is_refused(machine: Machine) -> None:
    """The refusal has the words of Kubernetes' kubelet."""
    await machine.create(
        shell("sleep 100", volume_mounts=_mount("/data")),
        volumes=[{"name": "data", "hostPath": {"path": str(machine.folder / "nothing"), "type": "Directory"}}],
    )
    assert "hostPath type check failed" in await machine.noted("FailedMount")


def test_a_payload_changes_in_one_step(tmp_path: Path) -> None:
    """A reader of the old version sees all of it; the new version is complete from the first moment."""
    folder = tmp_path / "volume"
    with ConfinedDirectory.at(folder, create=True) as volume:
        assert write_payload(volume, {"a": FileProjection(b"1"), "deep/b": FileProjection(b"2", 0o600)})
        assert not write_payload(volume, {"a": FileProjection(b"1"), "deep/b": FileProjection(b"2", 0o600)})
        before = (folder / "..data").resolve()
        assert write_payload(volume, {"a": FileProjection(b"3")})
    assert {path.name for path in folder.iterdir() if not path.name.startswith("..")} == {"a"}
    assert (folder / "a").read_bytes() == b"3"
    assert not before.exists()
    assert (folder / "a").is_symlink()


@pytest.mark.parametrize("path", ["/etc/x", "../x", "a/../../x", "..", "..data", "..data/x", "a//x", "", "a\0b"])
def test_a_payload_stays_in_its_volume(tmp_path: Path, path: str) -> None:
    """A path that leaves the volume is refused even if the server accepted it; the content stays."""
    with ConfinedDirectory.at(tmp_path / "volume", create=True) as volume:
        write_payload(volume, {"a": FileProjection(b"1")})
        with pytest.raises((ContainerError, OSError)):
            write_payload(volume, {path: FileProjection(b"2")})
    assert [name.name for name in tmp_path.iterdir()] == ["volume"]
    assert (tmp_path / "volume" / "a").read_bytes() == b"1"
    assert len([*(tmp_path / "volume").iterdir()]) == 3


def test_a_payload_takes_the_place_of_whatever_is_there(tmp_path: Path) -> None:
    """Links lead nowhere else, and folders are removed."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "kept").write_text("x")
    folder = tmp_path / "volume"
    with ConfinedDirectory.at(folder, create=True) as volume:
        for link in ("..data", "..data_tmp", "a", "other"):
            (folder / link).symlink_to(tmp_path / "outside")
        assert write_payload(volume, {"a": FileProjection(b"1")})
        (folder / "..data").unlink()
        for name in ("..data", "..data_tmp", "other"):
            (folder / name / "deep").mkdir(parents=True)
        assert write_payload(volume, {"a": FileProjection(b"2"), "b/c": FileProjection(b"3")})
    assert ((folder / "a").read_bytes(), (folder / "b" / "c").read_bytes()) == (b"2", b"3")
    assert len([*folder.iterdir()]) == 4
    assert (tmp_path / "outside" / "kept").read_text() == "x"


async def test_restarts_keep_the_volumes(machine: Machine) -> None:
    """A container that is restarted finds its emptyDir as it left it."""
    pod = await machine.ended(
        shell("echo x >> /data/x; test $(wc -l < /data/x) = 2", volume_mounts=_mount("/data")),
        restart_policy="OnFailure",
        volumes=[{"name": "data", "emptyDir": {}}],
    )
    assert status_of(pod).restart_count == 1
