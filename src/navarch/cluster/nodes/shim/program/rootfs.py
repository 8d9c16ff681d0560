"""The root file system of a container: the machine's files, or those of an image, with the container's mounts, and
writes kept apart.

With overlays, writes outside of volumes go to memory and end with the container; without them the container sees the
machine's folders, which root's containers cannot write to. The mount namespace of the container has all of this;
nothing is left when its last process ends. An image is shared by all of its containers: none of them changes it.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct

from navarch.cluster.nodes.shim.program import kernel
from navarch.cluster.nodes.shim.program.confined_directory import ConfinedDirectory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Final

_BIND: Final = kernel.BIND | kernel.RECURSIVE
_KEPT: Final = os.ST_NOSUID | os.ST_NODEV | os.ST_NOEXEC
"""What a mount that is made read-only has to keep."""
_MOUNT_SETATTR: Final = 442
_CURRENT: Final = -100
_INSIDE: Final = 0x8000
_ONLY_READ: Final = struct.pack("=4Q", kernel.READ_ONLY, 0, 0, 0)
_SIZE: Final = "size=1g"
_OWN: Final = frozenset({"dev", "proc", "sys"})
_DEVICES: Final = ("null", "zero", "full", "random", "urandom", "tty")
_LINKS: Final = {"fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2", "ptmx": "pts/ptmx"}
_KERNELS_OWN: Final = ("acpi", "bus", "driver", "fs", "irq", "scsi", "sys", "sysrq-trigger", "tty")
"""Parts of /proc through which the machine is changed."""
_SECRETS: Final = ("kcore", "keys", "timer_list")
"""Files of /proc that show other processes and the kernel's memory."""
_ESCAPES: Final = {"\\040": " ", "\\011": "\t", "\\012": "\n", "\\134": "\\"}
_NOT_IN_OPTIONS: Final = frozenset(",:\\")


def enter(
    base: str,
    mounts: Sequence[tuple[str, str, bool]],
    *,
    own_processes: bool,
    privileged: bool = False,
    hidden: Sequence[str] = (),
    image: str = "",
) -> None:
    """Makes the tree and moves into it. `base` is an empty folder; `mounts` are (source, target, read-only).

    The files are those of the folder `image`, if there is one, else the machine's; folders that are `hidden` are empty
    then. One that is `privileged` may change the kernel's settings. Needs a mount namespace of its own. Raises `OSError`.
    """
    kernel.mount("", "/", flags=kernel.RECURSIVE | kernel.PRIVATE)
    mounted = _mounted()
    kernel.mount("tmpfs", base, "tmpfs", options=f"mode=0755,{_SIZE}")
    root = f"{base}/root"
    for folder in (root, f"{base}/upper", f"{base}/work", f"{base}/folder"):
        os.mkdir(folder)
    _make_file(f"{base}/file")
    kernel.mount("tmpfs", root, "tmpfs", options=f"mode=0755,{_SIZE}")
    placed = sorted((_resolved(target, image), source, read_only) for source, target, read_only in mounts)
    mirror = _Mirror(base, root, [(image + target, os.path.isdir(source)) for target, source, _ in placed])
    if image:
        mirror.show_image(image)
    else:
        mirror.show_machine(mounted)
    _make_devices(f"{root}/dev")
    _show_processes(f"{root}/proc", own=own_processes)
    kernel.mount("/sys", f"{root}/sys", flags=_BIND)
    if not privileged:
        _protect_kernel(root)
    for path in () if image else hidden:
        _hide(root + os.path.realpath(path))
    with ConfinedDirectory.at(root) as tree:
        for target, source, read_only in placed:
            _place(tree, base, source, target, read_only=read_only)
    _move_into(root)


def make_root_read_only() -> None:
    """Makes the root file system read-only; what is mounted in it stays as it is."""
    kernel.mount("", "/", flags=kernel.REMOUNT | kernel.BIND | kernel.READ_ONLY | os.statvfs("/").f_flag & _KEPT)


def _resolved(target: str, image: str) -> str:
    """Where the target really is: /var/run is a link to /run on most machines, and in most images."""
    found = os.path.realpath(image + os.path.normpath(os.path.join("/", target)))
    if image and not found.startswith(f"{image}/"):
        raise OSError(errno.EXDEV, f"mount {target}: a link of the image leads out of it")
    return found.removeprefix(image)


class _Mirror:
    """Shows the machine's folders in a new root. `points` are where something will be mounted, and whether it is a folder."""

    def __init__(self, base: str, root: str, points: list[tuple[str, bool]]) -> None:
        self._base = base
        self._root = root
        self._points = points
        self._layers = 0

    def show_machine(self, mounted: list[str]) -> None:
        for name in os.listdir("/"):
            source, target = f"/{name}", f"{self._root}/{name}"
            if os.path.islink(source):
                os.symlink(os.readlink(source), target)
            elif name in _OWN:
                os.mkdir(target)
            elif not os.path.isdir(source):
                _show_read_only(source, target)
            elif self._overlay(source, target):
                self._show_mounts([point for point in mounted if point.startswith(f"{source}/")])
            else:
                self._mirror(source, target)
                if os.geteuid() == 0:
                    _make_read_only(target)

    def show_image(self, image: str) -> None:
        """All of the image under one layer of the container's own; without overlays nothing of it can be written to."""
        if not self._overlay(image, self._root):
            for name in os.listdir(image):
                if name not in _OWN:
                    self._mirror_read_only(f"{image}/{name}", f"{self._root}/{name}")
        for name in _OWN:
            os.makedirs(f"{self._root}/{name}", exist_ok=True)

    def _mirror_read_only(self, source: str, target: str) -> None:
        if os.path.islink(source) or not os.path.isdir(source):
            _show(source, target)
        else:
            self._mirror(source, target)
        if not os.path.islink(source):
            _make_read_only(target)

    def _overlay(self, lower: str, target: str) -> bool:
        """The machine's folder under a layer of the container's own, in which the mount points are; False if that fails."""
        if _NOT_IN_OPTIONS & {*lower}:
            return False
        self._layers += 1
        upper, work = f"{self._base}/upper/{self._layers}", f"{self._base}/work/{self._layers}"
        os.mkdir(work)
        _make_like(lower, upper)
        is_new = not os.path.isdir(target)
        try:
            if is_new:
                os.mkdir(target)
            for point, folder in self._points:
                if point.startswith(f"{lower}/"):
                    _make_points(upper, lower, point, folder=folder)
            kernel.mount("overlay", target, "overlay", options=f"lowerdir={lower},upperdir={upper},workdir={work}")
        except OSError:
            if is_new:
                os.rmdir(target)
            return False
        return True

    def _show_mounts(self, points: list[str]) -> None:
        """Mounts inside a folder, which its overlay does not show: each under a layer of its own, or only to be read."""
        for point in points:
            target = f"{self._root}{point}"
            try:
                if not os.path.isdir(point) or not self._overlay(point, target):
                    kernel.mount(point, target, flags=_BIND)
                    _make_read_only(target)
            except OSError:  # something else is mounted over it, or it belongs to somebody else
                continue

    def _mirror(self, source: str, target: str) -> None:
        """A folder with all that is in the machine's; those on the way to a mount point are made anew, so that it fits in."""
        if not any(point.startswith(f"{source}/") for point, _ in self._points):
            _show(source, target)
            return
        os.mkdir(target)
        for name in os.listdir(source):
            inner = f"{source}/{name}"
            if os.path.isdir(inner) and not os.path.islink(inner):
                self._mirror(inner, f"{target}/{name}")
            else:
                _show(inner, f"{target}/{name}")


def _show(source: str, target: str) -> None:
    """One entry of a folder; what cannot be shown is left out."""
    if os.path.islink(source):
        os.symlink(os.readlink(source), target)
    elif os.path.exists(source):
        _make_point(target, folder=os.path.isdir(source))
        kernel.mount(source, target, flags=_BIND)


def _show_read_only(source: str, target: str) -> None:
    _show(source, target)
    _make_read_only(target)


def _make_read_only(target: str) -> None:
    """All mounts at the target and inside of it: by one call, or one by one before Linux 5.12."""
    try:
        kernel.call(
            _MOUNT_SETATTR, _CURRENT, ctypes.c_char_p(os.fsencode(target)), _INSIDE, _ONLY_READ, len(_ONLY_READ)
        )
    except OSError:
        _make_each_read_only(target)


def _make_each_read_only(target: str) -> None:
    for point in _mounted():
        if point == target or point.startswith(f"{target}/"):
            kept = os.statvfs(point).f_flag & _KEPT
            kernel.mount("", point, flags=kernel.REMOUNT | kernel.BIND | kernel.READ_ONLY | kept)


def _make_points(upper: str, lower: str, point: str, *, folder: bool) -> None:
    """The folders on the way to the point in the upper layer, as they are below; and the point, if it is nowhere."""
    rest = point.removeprefix(lower)
    above, _, _ = rest.rpartition("/")
    way = ""
    for part in above.split("/")[1:]:
        way += f"/{part}"
        if not os.path.exists(upper + way):
            _make_like(lower + way, upper + way)
    if not os.path.exists(point):
        _make_point(upper + rest, folder=folder)


def _make_like(known: str, new: str) -> None:
    """A folder with the rights of the one that is known, if it is."""
    os.mkdir(new)
    try:
        found = os.stat(known)
        os.chmod(new, stat.S_IMODE(found.st_mode))
        os.chown(new, found.st_uid, found.st_gid)
    except OSError:  # it is new, or belongs to somebody who is not known here
        return


def _mounted() -> list[str]:
    """Where something is mounted on this machine, those above before those below."""
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as lines:
        found = {line.split(" ")[4] for line in lines}
    return sorted(_unescaped(point) for point in found)


def _unescaped(point: str) -> str:
    for code, character in _ESCAPES.items():
        point = point.replace(code, character)
    return point


def _make_point(target: str, *, folder: bool) -> None:
    if folder:
        os.makedirs(target, exist_ok=True)
    elif not os.path.lexists(target):
        os.makedirs(os.path.dirname(target), exist_ok=True)
        _make_file(target)


def _make_file(path: str) -> None:
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o666))


def _make_devices(folder: str) -> None:
    kernel.mount("tmpfs", folder, "tmpfs", options="mode=0755,size=64k")
    for name in (*_DEVICES, "pts", "mqueue"):
        _show(f"/dev/{name}", f"{folder}/{name}")
    for name in _DEVICES:  # they can be written to all the same; their modes and owners are the machine's
        if os.path.exists(f"{folder}/{name}"):
            _make_read_only(f"{folder}/{name}")
    for name, place in _LINKS.items():
        os.symlink(place, f"{folder}/{name}")
    os.mkdir(f"{folder}/shm")
    kernel.mount("tmpfs", f"{folder}/shm", "tmpfs", options="mode=1777,size=64m")


def _show_processes(folder: str, *, own: bool) -> None:
    """The container's own processes; a machine that hides parts of its own may forbid that."""
    if own:
        try:
            kernel.mount("proc", folder, "proc")
        except PermissionError:
            own = False
    if not own:
        kernel.mount("/proc", folder, flags=_BIND)


def _protect_kernel(root: str) -> None:
    """Root's programs could change the machine through the kernel's own files, whatever capabilities they have."""
    _make_read_only(f"{root}/sys")
    for name in _KERNELS_OWN:
        path = f"{root}/proc/{name}"
        if os.path.exists(path):
            kernel.mount(path, path, flags=_BIND)
            _make_read_only(path)
    for name in _SECRETS:
        if os.path.exists(f"{root}/proc/{name}"):
            kernel.mount("/dev/null", f"{root}/proc/{name}", flags=kernel.BIND)


def _hide(folder: str) -> None:
    if os.path.isdir(folder):
        kernel.mount("tmpfs", folder, "tmpfs", options=f"mode=0755,{_SIZE}")


def _place(tree: ConfinedDirectory, base: str, source: str, target: str, *, read_only: bool) -> None:
    """Mounts the source in the tree. The target is resolved as the container would: a link in a volume that is already
    there leads nowhere else, and what is made on the way is made inside.
    """
    folder = os.path.isdir(source)
    if read_only:
        source = _read_only_copy(source, f"{base}/folder" if folder else f"{base}/file")
    above, _, _ = target.rpartition("/")
    tree.make_directories(target if folder else above, 0o755, links="in_root")
    if not folder and not tree.leads_to(target, links="in_root"):
        _make_mount_point(tree, target)
    fd = tree.open(target, os.O_PATH, links="in_root")
    try:
        kernel.mount(source, f"/proc/self/fd/{fd}", flags=_BIND)
    except OSError as error:
        raise OSError(error.errno, f"mount {target}: {os.strerror(error.errno or 0)}") from error
    finally:
        os.close(fd)
    if read_only:
        kernel.unmount(source, kernel.DETACH)


def _make_mount_point(tree: ConfinedDirectory, target: str) -> None:
    """A file to mount on. Other containers may write to the volume that it is in: a pipe of theirs is not waited for."""
    flags = os.O_CREAT | os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY
    try:
        os.close(tree.open(target, flags, 0o666, links="in_root"))
    except OSError as error:
        raise OSError(error.errno, f"mount {target}: {os.strerror(error.errno or 0)}") from error


def _read_only_copy(source: str, stage: str) -> str:
    """A mount of the source that cannot be written to, where no container can reach it: mounts of it cannot either."""
    kernel.mount(source, stage, flags=_BIND)
    kept = os.statvfs(stage).f_flag & _KEPT
    kernel.mount("", stage, flags=kernel.REMOUNT | kernel.BIND | kernel.READ_ONLY | kept)
    return stage


def _move_into(root: str) -> None:
    os.chdir(root)
    kernel.pivot_root(".", ".")
    kernel.unmount(".", kernel.DETACH)
    os.chdir("/")
