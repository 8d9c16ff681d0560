"""`Volumes`: the volumes of one pod as folders and files of this machine."""

from __future__ import annotations

import asyncio
import logging
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Final

from navarch._base.clock import Clock
from navarch._base.tasks import uninterrupted, within
from navarch.client import Client
from navarch.cluster.nodes.shim.program.confined_directory import ConfinedDirectory
from navarch.cluster.nodes.volumes.atomic_writer import PodFolder, check_depth, write_payload
from navarch.cluster.nodes.volumes.projections import Files, PodPlacement, VolumeProjections
from navarch.errors import ContainerError, NavarchError, NotFound
from navarch.k8s.core.v1 import HostPathVolumeSource, PersistentVolume, PersistentVolumeClaim, Pod, Volume

_log = logging.getLogger("navarch.nodes")
_SAFE_SECONDS: Final = 60.0
"""How often files are looked at even if nothing is heard."""
_OWN: Final = "navarch.dev/local"
_PROVISIONER: Final = "pv.kubernetes.io/provisioned-by"
_CHECKS: Final[dict[str, tuple[Callable[[Path], bool], str]]] = {
    "Directory": (Path.is_dir, "directory"),
    "File": (Path.is_file, "file"),
    "Socket": (Path.is_socket, "socket file"),
    "CharDevice": (Path.is_char_device, "character device"),
    "BlockDevice": (Path.is_block_device, "block device"),
}


class Volumes:
    """Prepares the volumes of one pod, and updates their files while the pod runs.

    Files are written in threads, since a pod decides how many there are. A cancelled writer waits for its thread, so
    that nothing is written after the pod's end.
    """

    def __init__(self, client: Client, placement: PodPlacement, folder: PodFolder, clock: Clock) -> None:
        self._client = client
        self._folder = folder
        self._clock = clock
        self._projections = VolumeProjections(client, placement, clock)
        self._paths: dict[str, Path] = {}
        self._read_only: set[str] = set()
        self._changed = asyncio.Event()

    async def prepare(self, pod: Pod) -> None:
        """Prepares every volume; raises `ContainerError` for the first one that fails."""
        for volume in pod.spec.volumes or []:
            try:
                self._paths[volume.name] = await self._made(pod, volume)
            except (NavarchError, OSError) as error:
                raise ContainerError(f'MountVolume.SetUp failed for volume "{volume.name}" : {error}') from error
            await self._give_to_group(pod, volume)
            if _is_read_only(volume):
                self._read_only.add(volume.name)

    def path(self, name: str) -> Path:
        """Returns the path of a volume on this machine."""
        return self._paths[name]

    def is_read_only(self, name: str) -> bool:
        """Returns whether the volume is read-only, whatever its mount says."""
        return name in self._read_only

    async def prepare_sub_path(self, name: str, path: str) -> None:
        """Creates the subPath of a volume if it is missing, with the volume's mode. Links are followed inside the
        volume; raises `ContainerError` for a path that leaves it or is too deep.
        """
        check_depth(path, "subPath")
        try:
            await uninterrupted(asyncio.to_thread(_make_sub_path, self._paths[name], path))
        except OSError as error:
            said = f'failed to prepare subPath for volumeMount "{name}": {path!r}: {error.strerror or error}'
            raise ContainerError(said) from error

    def changed(self) -> None:
        """Notifies that the source of a file may have changed."""
        self._changed.set()

    async def keep(self, pod: Callable[[], Pod]) -> None:
        """Updates the files until it is cancelled; `pod` returns the current pod."""
        if not any(_has_files(volume) for volume in pod().spec.volumes or []):
            await asyncio.Event().wait()
        while True:
            await self._until_due()
            try:
                await self._refresh(pod())
            except (NavarchError, OSError) as error:
                _log.info(
                    "updating the volumes of pod %s/%s failed: %s; the files stay as they are",
                    pod().namespace,
                    pod().name,
                    error,
                )

    async def _until_due(self) -> None:
        renewal = self._projections.seconds_until_renewal()
        try:
            seconds = _SAFE_SECONDS if renewal is None else min(renewal, _SAFE_SECONDS)
            await within(self._clock, seconds, _waited(self._changed))
        except TimeoutError:
            pass
        self._changed.clear()

    async def _refresh(self, pod: Pod) -> None:
        for volume in pod.spec.volumes or []:
            if _has_files(volume):
                await self._write(volume, await self._projections.files(pod, volume))

    async def _made(self, pod: Pod, volume: Volume) -> Path:
        own = self._folder.path / _place(volume)
        if _has_files(volume):
            await self._write(volume, await self._projections.files(pod, volume))
            return own
        if volume.empty_dir is not None:
            with self._folder.open(_place(volume), create=0o777):
                return own
        if volume.host_path is not None:
            return _of_machine(volume.host_path)
        if volume.persistent_volume_claim is not None:
            return await self._claimed(pod, volume.persistent_volume_claim.claim_name)
        if volume.ephemeral is not None:
            return await self._claimed(pod, f"{pod.name}-{volume.name}")
        raise ContainerError("expected a kind of volume that this node knows, got another")

    async def _claimed(self, pod: Pod, name: str) -> Path:
        try:
            claim = await self._client.get(PersistentVolumeClaim, name, namespace=pod.namespace)
            if claim.status.phase != "Bound" or not claim.spec.volume_name:
                raise ContainerError(f'persistentvolumeclaim "{name}" is not bound')
            found = await self._client.get(PersistentVolume, claim.spec.volume_name)
        except NotFound as error:
            raise ContainerError(f'persistentvolumeclaim "{name}" or its volume not found') from error
        if found.spec.host_path is not None:
            return _of_machine(found.spec.host_path)
        if found.spec.local is None:
            raise ContainerError(f'volume "{found.name}" is neither local nor a path of this machine')
        return _local(Path(found.spec.local.path), ours=found.annotations.get(_PROVISIONER) == _OWN)

    async def _write(self, volume: Volume, files: Files) -> None:
        await uninterrupted(asyncio.to_thread(_write_files, self._folder, _place(volume), files))

    async def _give_to_group(self, pod: Pod, volume: Volume) -> None:
        """Applies fsGroup: gives the shared files of the pod to its group."""
        group = pod.spec.security_context.fs_group if pod.spec.security_context else None
        path = self._paths[volume.name]
        if group is None or os.geteuid() != 0 or volume.host_path is not None or not path.is_dir():
            return
        await uninterrupted(asyncio.to_thread(_give_to_group, path, group))


def _write_files(folder: PodFolder, place: str, files: Files) -> None:
    with folder.open(place, create=0o755) as root:
        write_payload(root, files)


def _make_sub_path(path: Path, below: str) -> None:
    with ConfinedDirectory.at(path) as volume:
        if not volume.leads_to(below, links="beneath"):
            mode = stat.S_IMODE(os.fstat(volume.fd).st_mode)
            volume.make_directories(below, mode, links="beneath")


def _give_to_group(path: Path, group: int) -> None:
    with ConfinedDirectory.at(path) as root:
        root.give_to_group(group)
        os.fchmod(root.fd, stat.S_IMODE(os.fstat(root.fd).st_mode) | 0o2770)


def _place(volume: Volume) -> str:
    """Returns the path of a volume in the pod's folder."""
    return f"volumes/{volume.name}"


def _is_read_only(volume: Volume) -> bool:
    claim = volume.persistent_volume_claim
    return _has_files(volume) or (claim is not None and claim.read_only is True)


def _has_files(volume: Volume) -> bool:
    """Returns whether the volume's files come from the API server."""
    return any(
        source is not None for source in (volume.config_map, volume.secret, volume.downward_api, volume.projected)
    )


def _local(path: Path, *, ours: bool) -> Path:
    """Returns the path of a local volume; creates one that this cluster provisioned when it is first used."""
    if ours:
        ConfinedDirectory.at(path, create=True).close()
    if not path.exists():
        raise ContainerError(f'path "{path}" does not exist')
    return path


def _of_machine(source: HostPathVolumeSource) -> Path:
    path, kind = Path(source.path), source.type or ""
    if kind == "DirectoryOrCreate":
        ConfinedDirectory.at(path, create=True).close()
    elif kind == "FileOrCreate" and not path.exists():
        with ConfinedDirectory.at(path.parent) as above:
            above.create(path.name, b"", 0o644)
    kind = kind.removesuffix("OrCreate")
    if kind in _CHECKS:
        holds, word = _CHECKS[kind]
        if not holds(path):
            raise ContainerError(f"hostPath type check failed: {path} is not a {word}")
    elif not path.exists():
        ConfinedDirectory.at(path, create=True).close()
    return path


async def _waited(event: asyncio.Event) -> None:
    await event.wait()
