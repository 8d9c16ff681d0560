"""Whoever may only create pods and ConfigMaps neither reads nor changes anything of the machine through volumes."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import pytest

from cluster.nodes import refusing
from machine_limits import needs_namespaces
from navarch.api import Dynamic
from navarch.client import Client, MergePatch
from navarch.cluster.embedded.components import ComponentOptions
from navarch.errors import BadRequest, Forbidden, Invalid, NotFound
from navarch.k8s.core.v1 import ConfigMap, Event, Node, PersistentVolume, PersistentVolumeClaim, Pod
from navarch.testing.cluster import Cluster, in_process

SECONDS = 60.0
BARE = (sys.executable, str(Path(refusing.__file__)), sys.executable, "-I", "-S")
RBAC = "rbac.authorization.k8s.io"
SECRET = "of the machine alone"
NOTHING = "[]\n"

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root could do harm there")


class Attacker:
    """A user who may create pods and ConfigMaps, and a folder of the machine that is none of his business."""

    def __init__(self, cluster: Cluster, client: Client, folder: Path) -> None:
        self.cluster = cluster
        self.client = client
        self.folder = folder / "cluster"
        self.victim = folder / "victim"
        (self.victim / "inner").mkdir(parents=True)
        (self.victim / "secret").write_text(SECRET)

    async def create(self, *containers: dict[str, Any], name: str = "pod", **spec: Any) -> None:
        """A pod."""
        spec = {
            "terminationGracePeriodSeconds": 0,
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "containers": list(containers),
            **spec,
        }
        await self.client.create(Dynamic(apiVersion="v1", kind="Pod", metadata={"name": name}, spec=spec))

    async def log(self, *containers: dict[str, Any], name: str = "pod", **spec: Any) -> str:
        """What the first container of a pod has said when the pod is over."""
        await self.create(*containers, name=name, **spec)
        await self.until(name, lambda pod: pod.status.phase in {"Succeeded", "Failed"})
        return await self.said(name)

    async def until(self, name: str, holds: Any) -> Pod:
        """The pod, once it holds."""
        return await self.cluster.eventually(lambda: self.cluster.get(Pod, name), holds, timeout=SECONDS)

    async def said(self, name: str) -> str:
        """What the pod has said so far."""
        try:
            return await self.cluster.client.logs(name)
        except BadRequest:  # it has not started yet
            return ""

    async def refused(self, name: str) -> str:
        """Why the container of a pod is not started."""
        await self.until(
            name, lambda pod: pod.status.phase == "Succeeded" or _waits_for(pod) == "CreateContainerConfigError"
        )
        status = (await self.cluster.get(Pod, name)).status.container_statuses or []
        state = status[0].state
        return (state.waiting.message if state is not None and state.waiting is not None else "") or "started"

    async def gone(self, name: str) -> None:
        """Deletes the pod; returns when its node has nothing of it."""
        uid = (await self.cluster.get(Pod, name)).metadata.uid
        await self.client.delete(Pod, name, grace_seconds=0)
        await self.cluster.eventually(lambda: self._left(uid), lambda left: not left, timeout=SECONDS, what="no folder")

    async def _left(self, uid: str) -> list[Path]:
        return [*self.folder.glob(f"nodes/*/pods/{uid}")]

    def is_safe(self) -> bool:
        """Whether the victim is as it was."""
        found = sorted(str(path.relative_to(self.victim)) for path in self.victim.rglob("*"))
        return found == ["inner", "secret"] and (self.victim / "secret").read_text() == SECRET


def _waits_for(pod: Pod) -> str | None:
    for status in pod.status.container_statuses or []:
        if status.state is not None and status.state.waiting is not None:
            return status.state.waiting.reason
    return None


Mode = Literal["namespaces", "bare"]


@pytest.fixture(params=["namespaces", pytest.param("bare", marks=pytest.mark.long)])
def mode(request: pytest.FixtureRequest) -> Mode:
    """Whether the machine gives namespaces to containers."""
    found: Mode = request.param
    return found


@pytest.fixture
async def attacker(mode: Mode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Attacker]:
    """With a cluster of one process node."""
    if mode == "bare":
        monkeypatch.setattr("navarch.cluster.nodes.shim.runtime._PYTHON", BARE)
    async with in_process(ComponentOptions(nodes=1, folder=tmp_path / "cluster")) as cluster:
        await cluster.eventually(lambda: cluster.list(Node), bool, timeout=SECONDS, what="a node")
        rules = [{"apiGroups": [""], "resources": ["pods", "configmaps", "persistentvolumeclaims"], "verbs": ["*"]}]
        kind = {"apiVersion": f"{RBAC}/v1", "metadata": {"name": "attacker"}}
        await cluster.client.create(Dynamic(kind="Role", rules=rules, **kind))
        subject = {"kind": "User", "name": "mallory", "apiGroup": RBAC}
        role = {"kind": "Role", "name": "attacker", "apiGroup": RBAC}
        await cluster.client.create(Dynamic(kind="RoleBinding", subjects=[subject], roleRef=role, **kind))
        yield Attacker(cluster, cluster.client_as("mallory"), tmp_path)


only_with_namespaces = pytest.mark.parametrize("mode", ["namespaces"], indirect=True)
only_bare = pytest.mark.parametrize("mode", ["bare"], indirect=True)


def shell(script: str, *mounts: dict[str, Any], name: str = "main", **fields: Any) -> dict[str, Any]:
    """A container that runs a script."""
    return {"name": name, "image": "busybox", "command": ["sh", "-c", script], "volumeMounts": [*mounts], **fields}


def python(program: str, *mounts: dict[str, Any], **env: str) -> dict[str, Any]:
    """A container that runs a program; paths of mounts in its variables are those of the machine where it has no other."""
    variables = [{"name": key, "value": value} for key, value in env.items()]
    given = {"image": "python", "command": ["python", "-c", program], "env": variables}
    return {"name": "main", "volumeMounts": [*mounts], **given}


def mount(path: str, name: str = "data", **fields: Any) -> dict[str, Any]:
    """Where a volume is."""
    return {"name": name, "mountPath": path, **fields}


# Paths of files


@only_with_namespaces
async def test_file_of_a_projected_volume_is_not_written_elsewhere(attacker: Attacker) -> None:
    """Whatever source it comes from, and however its path leads out."""
    await attacker.client.create(ConfigMap(name="c", data={"k": "written"}))
    item = {"fieldRef": {"fieldPath": "metadata.name"}}
    for path in (
        f"{attacker.victim}/new",
        f"../../../../../../../..{attacker.victim}/new",
        "a/../../new",
        "..data/new",
    ):
        for source in (
            {"configMap": {"name": "c", "items": [{"key": "k", "path": path}]}},
            {"secret": {"name": "c", "items": [{"key": "k", "path": path}]}},
            {"downwardAPI": {"items": [{"path": path, **item}]}},
            {"serviceAccountToken": {"path": path}},
            {"clusterTrustBundle": {"name": "c", "path": path}},
            {"podCertificate": {"signerName": "a.b/c", "keyType": "ED25519", "keyPath": path}},
        ):
            volume = {"name": "data", "projected": {"sources": [source]}}
            with pytest.raises(Invalid):
                await attacker.create(shell("true", mount("/data")), volumes=[volume])
    assert attacker.is_safe()


# What a node writes and removes

_REPLACE = """
import os, time
for place in ("/".join(["", "cm"]), os.environ["CM"]):
    for name in ("..data", "key"):
        try:
            os.rename(f"{place}/{name}", f"{place}/moved")
        except OSError:
            pass
        try:
            os.unlink(f"{place}/{name}")
        except OSError:
            pass
        try:
            os.symlink(os.environ["VICTIM"], f"{place}/{name}")
        except OSError:
            pass
print("replaced", flush=True)
for _ in range(600):
    found = open(os.environ["CM"] + "/key").read() if os.path.isfile(os.environ["CM"] + "/key") else ""
    if found == "2":
        print("updated")
        break
    time.sleep(0.1)
"""


async def test_update_of_a_config_map_removes_nothing_of_the_machine(attacker: Attacker) -> None:
    """Though a container has tried to put a link in the place of `..data`; and the update arrives."""
    await attacker.client.create(ConfigMap(name="c", data={"key": "1"}))
    container = python(_REPLACE, mount("/cm"), CM="/cm", VICTIM=str(attacker.victim))
    await attacker.create(container, volumes=[{"name": "data", "configMap": {"name": "c"}}])
    await attacker.cluster.eventually(lambda: attacker.said("pod"), lambda log: "replaced" in log, timeout=SECONDS)
    await attacker.client.patch(ConfigMap, "c", MergePatch({"data": {"key": "2"}}))
    pod = await attacker.until("pod", lambda pod: pod.status.phase in {"Succeeded", "Failed"})
    assert "updated" in await attacker.said(pod.name)
    assert attacker.is_safe()


_DEEP = """
import os
os.chdir(os.environ["DATA"])
os.symlink(os.environ["VICTIM"], "link")
for _ in range(3000):
    os.mkdir("d")
    os.chdir("d")
os.symlink(os.environ["VICTIM"], "link")
os.chmod(".", 0)
"""


async def test_nothing_is_left_of_a_pod_and_nothing_else_is_removed(attacker: Attacker) -> None:
    """Whatever it leaves in its volume: links, and more levels than anybody can descend."""
    container = python(_DEEP, mount("/data"), DATA="/data", VICTIM=str(attacker.victim))
    await attacker.log(container, volumes=[{"name": "data", "emptyDir": {}}])
    await attacker.gone("pod")
    assert attacker.is_safe()


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where clusters keep their files."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path


async def test_nothing_is_left_of_a_cluster_that_ends(state: Path) -> None:
    """However deep its containers made their volumes."""
    async with in_process(ComponentOptions(nodes=1)) as cluster:
        attacker = Attacker(cluster, cluster.client, state)
        container = python(_DEEP, mount("/data"), DATA="/data", VICTIM=str(attacker.victim))
        await attacker.log(container, volumes=[{"name": "data", "emptyDir": {}}])
    assert attacker.is_safe()
    assert _names(state) == ["victim"]


def _names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def test_nothing_is_left_of_a_cluster_that_is_deleted(state: Path) -> None:
    """By the command, with what its containers left."""
    clusters = state / "navarch" / "clusters"
    (clusters / "deep").mkdir(parents=True)
    victim = state / "victim"
    victim.mkdir()
    making = {**os.environ, "DATA": str(clusters / "deep"), "VICTIM": str(victim)}
    subprocess.run([sys.executable, "-c", _DEEP], env=making, check=True)
    command = [sys.executable, "-m", "navarch", "cluster", "down", "--delete", "--name", "deep"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert _names(clusters) == []
    assert victim.is_dir()


async def test_only_folders_of_the_cluster_are_made_and_removed_for_claims(attacker: Attacker) -> None:
    """Neither an annotation of a claim nor that of a volume makes a folder of the machine one of the cluster."""
    where = {"volume.kubernetes.io/selected-node": f"../../..{attacker.victim}"}
    size = {"resources": {"requests": {"storage": "1Gi"}}, "accessModes": ["ReadWriteOnce"]}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
    await attacker.client.create(Dynamic(metadata={"name": "claim", "annotations": where}, spec=size, **claim))
    await _noted(attacker, "ProvisioningFailed")
    volume = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "hostPath": {"path": str(attacker.victim)},
        "persistentVolumeReclaimPolicy": "Delete",
        "claimRef": {"namespace": "default", "name": "none", "uid": "none"},
        "storageClassName": "",
    }
    ours = {"pv.kubernetes.io/provisioned-by": "navarch.dev/local"}
    metadata = {"name": "volume", "annotations": ours}
    await attacker.cluster.client.create(
        Dynamic(apiVersion="v1", kind="PersistentVolume", metadata=metadata, spec=volume)
    )
    await attacker.cluster.eventually(
        lambda: attacker.cluster.list(PersistentVolume), lambda found: not found, timeout=SECONDS, what="no volume"
    )
    assert attacker.is_safe()
    assert (await attacker.cluster.get(PersistentVolumeClaim, "claim")).spec.volume_name is None


async def _noted(attacker: Attacker, reason: str) -> None:
    await attacker.cluster.eventually(
        lambda: attacker.cluster.list(Event),
        lambda found: any(event.reason == reason for event in found),
        timeout=SECONDS,
        what=f"an event {reason}",
    )


# Deep paths

_DEEP_PATH = "a/" * 1900 + "f"
_MOST_BLOCKED = 0.5
"""So many seconds of processor time the event loop may take at once; what is tried here took more than ten."""


@asynccontextmanager
async def _answering() -> AsyncIterator[None]:
    """Fails if the event loop, which all clients share, was kept by one piece of work meanwhile."""
    loop, longest, before = asyncio.get_running_loop(), 0.0, time.thread_time()
    ended = False

    def measure() -> None:
        nonlocal longest, before
        longest, before = max(longest, time.thread_time() - before), time.thread_time()
        if not ended:
            loop.call_later(0.01, measure)

    measure()
    try:
        yield
    finally:
        ended = True
    assert longest < _MOST_BLOCKED


@only_with_namespaces
async def test_files_at_deep_paths_are_refused_while_others_are_served(attacker: Attacker) -> None:
    """A pod that could keep the server for half a minute is told how deep its files may be."""
    await attacker.client.create(ConfigMap(name="c", data={"k": "v"}))
    items = [{"key": "k", "path": f"a{number}/{_DEEP_PATH}"} for number in range(20)]
    async with _answering():
        await attacker.create(shell("true", mount("/data")), volumes=[_config_map(items)])
        await _noted(attacker, "FailedMount")
        (note,) = {event.message for event in await attacker.cluster.list(Event) if event.reason == "FailedMount"}
    assert "at most 64 parts, got 1902" in str(note)


@only_with_namespaces
async def test_many_files_are_written_while_others_are_served(attacker: Attacker) -> None:
    """As deep as they may be, and very many of them."""
    await attacker.client.create(ConfigMap(name="c", data={"k": "v"}))
    items = [{"key": "k", "path": f"a{number}/{'a/' * 62}f"} for number in range(100)]
    async with _answering():
        assert (
            await attacker.log(shell(f"cat /data/a7/{'a/' * 62}f", mount("/data")), volumes=[_config_map(items)]) == "v"
        )
        await attacker.gone("pod")


async def test_mounts_at_deep_paths_are_refused(attacker: Attacker) -> None:
    """Each part would be a directory that the node makes, of a volume or of the container's tree."""
    env = [{"name": "DEEP", "value": _DEEP_PATH}]
    fields: dict[str, dict[str, Any]] = {
        "mountPath": {"volumeMounts": [mount(f"/mnt/{number}/{_DEEP_PATH}") for number in range(10)]},
        "subPath": {"volumeMounts": [mount(f"/{number}", subPath=f"{number}/{_DEEP_PATH}") for number in range(20)]},
        "subPathExpr": {"volumeMounts": [mount("/data", subPathExpr="$(DEEP)")], "env": env},
        "terminationMessagePath": {"terminationMessagePath": f"/tmp/{_DEEP_PATH}"},
    }
    async with _answering():
        for name, given in fields.items():
            volumes = [{"name": "data", "emptyDir": {}}]
            await attacker.create({**shell("true"), **given}, name=name.lower(), volumes=volumes)
            assert "of at most 64 parts, got 190" in await attacker.refused(name.lower())


def _config_map(items: list[dict[str, str]]) -> dict[str, Any]:
    return {"name": "data", "configMap": {"name": "c", "items": items}}


# Read-only volumes

_WRITES = """
import ctypes, errno, os, stat
libc = ctypes.CDLL(None, use_errno=True)
place, other = os.environ["PLACE"], os.environ["OTHER"]
if os.environ["BY"] == "mount":
    place, other = ("/" + text for text in os.environ["NAMES"].split())
if os.environ["BY"] == "relative":
    os.chdir(place)
    place = "."
if os.environ["BY"] == "link":
    os.symlink(os.path.realpath(place), other + "/link")
    place = other + "/link"
file = place + "/key"
fd = os.open(file, os.O_RDONLY)
folder = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
open(other + "/mine", "w").close()

def openat2(path, flags):
    how = (ctypes.c_uint64 * 3)(flags, 0o600 if flags & os.O_CREAT else 0, 0)
    found = libc.syscall(437, -100, path.encode(), how, 24)
    if found < 0:
        raise OSError(ctypes.get_errno(), "")

def linkat(old, new):
    if libc.linkat(-100, old.encode(), -100, new.encode(), 0x400) < 0:
        raise OSError(ctypes.get_errno(), "")

def creat(path):
    if libc.creat(path.encode(), 0o600) < 0:
        raise OSError(ctypes.get_errno(), "")

attacks = {
    "write": lambda: os.open(file, os.O_WRONLY),
    "append": lambda: os.open(file, os.O_RDWR | os.O_APPEND),
    "truncating open": lambda: os.open(file, os.O_RDONLY | os.O_TRUNC),
    "create": lambda: os.open(place + "/new", os.O_WRONLY | os.O_CREAT, 0o600),
    "creat": lambda: creat(place + "/new"),
    "temporary": lambda: os.open(place, os.O_TMPFILE | os.O_RDWR, 0o600),
    "openat2": lambda: openat2(file, os.O_WRONLY),
    "openat2 create": lambda: openat2(place + "/new", os.O_WRONLY | os.O_CREAT),
    "by descriptor": lambda: os.open("/proc/self/fd/%d" % fd, os.O_WRONLY),
    "by device": lambda: os.open("/dev/fd/%d" % fd, os.O_WRONLY),
    "at descriptor": lambda: os.open("key", os.O_WRONLY, dir_fd=folder),
    "up and down": lambda: os.open(place + "/../" + os.path.basename(os.path.realpath(place)) + "/key", os.O_WRONLY),
    "real path": lambda: os.open(os.path.realpath("/proc/self/fd/%d" % fd), os.O_WRONLY),
    "unlink": lambda: os.unlink(file),
    "unlink data": lambda: os.unlink(place + "/..data"),
    "unlink at": lambda: os.unlink("key", dir_fd=folder),
    "rename": lambda: os.rename(file, place + "/moved"),
    "rename out": lambda: os.rename(file, other + "/moved"),
    "rename in": lambda: os.rename(other + "/mine", file),
    "rename at": lambda: os.rename("key", "moved", src_dir_fd=folder, dst_dir_fd=folder),
    "link": lambda: os.link(file, place + "/hard"),
    "link out": lambda: os.link(file, other + "/hard"),
    "link out followed": lambda: linkat(file, other + "/followed"),
    "link out by descriptor": lambda: linkat("/proc/self/fd/%d" % fd, other + "/opened"),
    "link in": lambda: os.link(other + "/mine", place + "/hard"),
    "symlink": lambda: os.symlink("x", place + "/soft"),
    "mkdir": lambda: os.mkdir(place + "/made"),
    "fifo": lambda: os.mkfifo(place + "/fifo"),
    "chmod": lambda: os.chmod(file, 0o777),
    "chmod folder": lambda: os.chmod(place, 0o777),
    "fchmod": lambda: os.fchmod(fd, 0o777),
    "fchmod folder": lambda: os.fchmod(folder, 0o777),
    "chown": lambda: os.chown(file, os.getuid(), os.getgid()),
    "lchown": lambda: os.lchown(file, os.getuid(), os.getgid()),
    "fchown": lambda: os.fchown(fd, os.getuid(), os.getgid()),
    "truncate": lambda: os.truncate(file, 0),
    "utime": lambda: os.utime(file, (1, 1)),
    "futime": lambda: os.utime(fd, (1, 1)),
    "setxattr": lambda: os.setxattr(file, "user.x", b"y"),
    "fsetxattr": lambda: os.setxattr(fd, "user.x", b"y"),
}
done = []
for name, attack in attacks.items():
    try:
        attack()
    except OSError as error:
        if error.errno in (errno.EROFS, errno.EXDEV) or (name == "setxattr" and error.errno == errno.EOPNOTSUPP):
            continue
        name += " " + errno.errorcode[error.errno]
    done.append(name)
print(done)
"""
_KINDS: dict[str, dict[str, Any]] = {
    "configMap": {"configMap": {"name": "c"}},
    "secret": {"secret": {"secretName": "s"}},
    "downwardAPI": {"downwardAPI": {"items": [{"path": "key", "fieldRef": {"fieldPath": "metadata.name"}}]}},
    "token": {"projected": {"sources": [{"serviceAccountToken": {"path": "key"}}]}},
    "readOnly": {"emptyDir": {}},
}


@pytest.mark.parametrize(
    "by",
    ["mount", "link", pytest.param("path", marks=pytest.mark.long), pytest.param("relative", marks=pytest.mark.long)],
)
async def test_volumes_of_the_clusters_own_files_are_read_only(attacker: Attacker, by: str) -> None:
    """Whatever a program tries, and by whatever name it knows the volume; so is a mount that says readOnly."""
    await attacker.client.create(ConfigMap(name="c", data={"key": "1"}))
    secret = Dynamic(apiVersion="v1", kind="Secret", metadata={"name": "s"}, stringData={"key": "1"})
    await attacker.cluster.client.create(secret)
    found = {}
    for kind, source in _KINDS.items():
        name = f"{kind.lower()}-{by}"
        container = python(
            _WRITES,
            mount("/mounted/place", readOnly=kind == "readOnly"),
            mount("/other", "other"),
            PLACE="/mounted/place",
            OTHER="/other",
            BY=by,
            NAMES="mounted/place other",
        )
        init = shell("echo 1 > /data/key", mount("/data"), name="init") if kind == "readOnly" else None
        volumes = [{"name": "data", **source}, {"name": "other", "emptyDir": {}}]
        found[kind] = await attacker.log(container, name=name, volumes=volumes, initContainers=[init] if init else [])
    assert found == dict.fromkeys(_KINDS, NOTHING)


# Parts of volumes


@pytest.mark.parametrize(
    "sub_path",
    [
        "out/new/deep",
        "chain/secret",
        *(pytest.param(path, marks=pytest.mark.long) for path in ("out/secret", "out", "up/nodes", "file")),
    ],
)
async def test_part_of_a_volume_is_nothing_that_a_link_leads_to(attacker: Attacker, sub_path: str) -> None:
    """Neither a file of the machine, nor a folder that is made for it, nor what other pods have."""
    links = (
        f"ln -s {attacker.victim} /data/out; ln -s ../../../.. /data/up; ln -s out /data/chain;"
        f"ln -s {attacker.victim}/secret /data/file"
    )
    await attacker.create(
        shell("cat /part /part/*", mount("/part", subPath=sub_path)),
        initContainers=[shell(links, mount("/data"), name="init")],
        volumes=[{"name": "data", "emptyDir": {}}],
    )
    assert "failed to prepare subPath" in await attacker.refused("pod")
    assert attacker.is_safe()


async def test_variable_leads_no_part_of_a_volume_elsewhere(attacker: Attacker) -> None:
    """As its value is known to the node alone."""
    for number, value in enumerate(
        (f"../../../../../../../..{attacker.victim}", "..", f"x/../../../..{attacker.victim}")
    ):
        env = [{"name": "WHERE", "value": value}]
        await attacker.create(
            shell("ls /part", mount("/part", subPathExpr="$(WHERE)"), env=env),
            name=f"pod-{number}",
            volumes=[{"name": "data", "emptyDir": {}}],
        )
        assert "failed to prepare subPath" in await attacker.refused(f"pod-{number}")
    assert attacker.is_safe()


async def test_part_of_a_volume_can_be_reached_by_a_link_inside_of_it(attacker: Attacker) -> None:
    """As in Kubernetes."""
    said = await attacker.log(
        shell("cat /part/x", mount("/part", subPath="link")),
        initContainers=[shell("mkdir /data/a; echo word > /data/a/x; ln -s a /data/link", mount("/data"), name="init")],
        volumes=[{"name": "data", "emptyDir": {}}],
    )
    assert said == "word\n"


@needs_namespaces
@only_with_namespaces
async def test_mount_path_through_a_link_makes_nothing_on_the_machine(attacker: Attacker) -> None:
    """A volume inside of another one is mounted where the container would find it, and nowhere else."""
    said = await attacker.log(
        shell(f"ls {attacker.victim}", mount("/a"), mount("/a/link/deep/point", "other")),
        initContainers=[shell(f"ln -s {attacker.victim} /a/link", mount("/a"), name="init")],
        volumes=[{"name": "data", "emptyDir": {}}, {"name": "other", "emptyDir": {}}],
    )
    assert said.split() == ["deep", "inner", "secret"]
    assert attacker.is_safe()


# The machine's own files


async def test_files_of_other_pods_and_of_the_cluster_are_not_shown(attacker: Attacker) -> None:
    """A token lies on this machine while its pod runs; no other pod can read it."""
    token = {"name": "data", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}
    await attacker.create(shell("sleep 100", mount("/data")), name="other", volumes=[token])
    await attacker.until("other", lambda pod: pod.status.phase == "Running")
    places = [*attacker.folder.glob("nodes/*/pods/*/volumes/data/..data/token")]
    assert len(places) == 1
    said = await attacker.log(
        shell(
            f"exec 2> /dev/null; cat {places[0]} {attacker.folder}/nodes/*/pods/*/volumes/*/token; ls {attacker.folder}/*"
        )
    )
    assert said == ""


_OWN = """
import os
data = "/".join(["", "data"])
os.symlink("/proc/self/environ", os.environ["DATA"] + "/environ")
os.symlink("/proc/thread-self", os.environ["DATA"] + "/self")
done = []
for path in ("environ", "self/environ", "self/../environ"):
    try:
        if b"MARK=mine" not in open(data + "/" + path, "rb").read():
            done.append(path)
    except OSError:
        pass
print(done)
"""


async def test_link_in_a_volume_leads_to_no_files_of_the_node(attacker: Attacker) -> None:
    """Where files are opened for a container, `/proc/self` is not whoever opens them."""
    container = python(_OWN, mount("/data"), DATA="/data", MARK="mine")
    said = await attacker.log(container, volumes=[{"name": "data", "emptyDir": {}}])
    assert said == NOTHING


@pytest.fixture
def file_in_root() -> Iterator[Path]:
    """A file that lies directly in the machine's `/`."""
    path = Path(f"/navarch-security-{os.getpid()}")
    path.write_text(SECRET)
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


@needs_root
@only_with_namespaces
async def test_files_in_the_root_of_the_machine_are_not_changed(attacker: Attacker, file_in_root: Path) -> None:
    """Not by writing, truncating or giving them other rights, nor by removing or renaming them."""
    script = (
        "echo x > F; echo x >> F; : > F; chmod 777 F; touch -d 2001-01-01 F; mv F /moved; ln F /hard; rm -f F; true"
    )
    before = _state(file_in_root)
    await attacker.log(shell(script.replace("F", str(file_in_root))))
    assert _state(file_in_root) == before


def _state(path: Path) -> tuple[object, ...]:
    found = path.stat()
    return path.read_text(), found.st_mode, found.st_mtime, found.st_nlink


@pytest.fixture(params=["disk", "disk of mine"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """Another disk of the machine, somewhere inside of its folders."""
    folder: Path = tmp_path / request.param
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(folder)], check=True)
    try:
        (folder / "file").write_text(SECRET)
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@needs_root
@only_with_namespaces
async def test_other_disks_of_the_machine_are_not_changed(attacker: Attacker, disk: Path) -> None:
    """What a container writes there goes into memory, or is refused; a mount path inside of them makes no folder."""
    script = f"cd '{disk}'; echo x > file; echo x > new; rm file; mkdir folder; true"
    volumes = [{"name": "data", "emptyDir": {}}]
    await attacker.log(shell(script, mount(f"{disk}/deep/point")), volumes=volumes)
    assert _texts(disk) == {"file": SECRET}


def _texts(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


_KERNEL = """
import errno, glob, os, stat
places = ["/proc/sysrq-trigger", "/proc/sys/kernel/core_pattern", "/proc/sys/vm/swappiness", "/sys/power/state"]
places += ["/sys/kernel/uevent_helper", "/sys/kernel/mm/ksm/run", "/proc/irq/default_smp_affinity"]
places += ["/sys/fs/cgroup/cgroup.procs", *glob.glob("/sys/fs/cgroup/*/release_agent")]
done = []
for place in places:
    try:
        os.close(os.open(place, os.O_WRONLY))
        done.append(place)
    except OSError as error:
        if error.errno not in (errno.EROFS, errno.ENOENT, errno.EACCES):
            done.append(place + " " + str(error))
for folder in ("/tmp", os.environ["DATA"]):
    try:
        os.mknod(folder + "/device", 0o600 | stat.S_IFBLK, os.makedev(1, 0))
        done.append("device in " + folder)
    except PermissionError:
        pass
print(done)
"""


@needs_root
@only_with_namespaces
async def test_settings_and_devices_of_the_machine_are_out_of_reach(attacker: Attacker) -> None:
    """A program of root could otherwise change everything through the kernel's own files."""
    container = python(_KERNEL, mount("/data"), DATA="/data")
    assert await attacker.log(container, volumes=[{"name": "data", "emptyDir": {}}]) == NOTHING


# Signals

_LISTENS = """
import os, signal, time
signal.signal(signal.SIGRTMIN + 3, lambda *_: os._exit(7))
print("listens", flush=True)
time.sleep(600)
"""


@only_with_namespaces
async def test_container_is_stopped_by_nothing_but_a_signal(attacker: Attacker) -> None:
    """Other words of the `signal` module are refused; real-time signals arrive; and the node goes on with its pods."""
    linux = {"name": "linux"}
    for word in ("NSIG", "Handlers", "SIG_DFL", "SIGRTMIN+99", "sigterm", "9", ""):
        container = shell("sleep 600", lifecycle={"stopSignal": word})
        with pytest.raises(Invalid, match="stopSignal: Unsupported value"):
            await attacker.create(container, os=linux)
        with pytest.raises(Invalid, match="os: Unsupported value"):
            await attacker.create(container, os={"name": "plan9"})
        with pytest.raises(Invalid, match=r"may not be set for containers with empty `spec\.os\.name`"):
            await attacker.create(container)
    with pytest.raises(Invalid, match='supported values: "SIGKILL", "SIGTERM"'):
        await attacker.create(shell("true", lifecycle={"stopSignal": "SIGINT"}), os={"name": "windows"})
    container = {**python(_LISTENS), "lifecycle": {"stopSignal": "SIGRTMIN+3"}}
    await attacker.create(container, terminationGracePeriodSeconds=600, os=linux)
    await attacker.cluster.eventually(lambda: attacker.said("pod"), lambda log: "listens" in log, timeout=SECONDS)
    await attacker.client.delete(Pod, "pod")
    await attacker.cluster.eventually(
        lambda: attacker.cluster.list(Pod), lambda found: not found, timeout=SECONDS, what="no pod"
    )
    assert await attacker.log(shell("echo goes on"), name="other") == "goes on\n"


# Messages


@only_bare
async def test_termination_message_is_not_read_through_a_link(attacker: Attacker) -> None:
    """Nor does a pipe in its place keep the node waiting."""
    env = [{"name": "MESSAGE", "value": "/dev/termination-log"}]
    for name, script in (
        ("link", f"ln -sf {attacker.victim}/secret $MESSAGE"),
        ("pipe", "rm -f $MESSAGE; mkfifo $MESSAGE"),
        ("folder", "rm -f $MESSAGE; mkdir $MESSAGE"),
        ("above", f"cd ${{MESSAGE%/*}}; mv ../main ../moved; ln -s {attacker.victim} ../main"),
    ):
        await attacker.create(shell(f"{script}; true", env=env), name=name)
        pod = await attacker.until(name, lambda pod: pod.status.phase == "Succeeded")
        (status,) = pod.status.container_statuses or []
        assert status.state is not None
        assert status.state.terminated is not None
        assert not status.state.terminated.message
        await attacker.gone(name)
    assert attacker.is_safe()


async def test_termination_message_is_bounded(attacker: Attacker) -> None:
    """However much is written."""
    env = [{"name": "MESSAGE", "value": "/dev/termination-log"}]
    await attacker.create(shell("head -c 3000000 /dev/zero | tr '\\0' x > $MESSAGE", env=env))
    pod = await attacker.until("pod", lambda pod: pod.status.phase == "Succeeded")
    (status,) = pod.status.container_statuses or []
    assert status.state is not None
    assert status.state.terminated is not None
    assert status.state.terminated.message == "x" * 4096


async def test_nothing_more_is_allowed_than_that(attacker: Attacker) -> None:
    """The user of these tests has no other rights."""
    with pytest.raises(Forbidden):
        await attacker.client.list(Node)
    with pytest.raises(NotFound):
        await attacker.client.get(Pod, "nobody")
