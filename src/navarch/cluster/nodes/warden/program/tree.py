"""A container's own file tree: the machine's, as it is, with the container's mounts in it and all writes kept apart.

Where overlays can be mounted, what a container writes outside of its volumes goes into memory and ends with it; where
they cannot, it sees the machine's folders as they are. Nothing of this is visible outside of the container's mount
namespace, and nothing is left when its last process ends.
"""

from __future__ import annotations

import os
import stat

from navarch.cluster.nodes.warden.program import kernel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

__all__ = ["enter"]

_BIND: Final = kernel.BIND | kernel.RECURSIVE
_SIZE: Final = "size=1g"
_OWN: Final = frozenset({"dev", "proc", "sys"})
_DEVICES: Final = ("null", "zero", "full", "random", "urandom", "tty")
_LINKS: Final = {"fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2", "ptmx": "pts/ptmx"}


def enter(base: str, mounts: list[Any], *, own_processes: bool) -> None:
    """Makes the tree and moves into it. `base` is an empty folder; `mounts` are (source, target, read-only).

    Needs a mount namespace of its own. Raises `OSError`.
    """
    kernel.mount("", "/", flags=kernel.RECURSIVE | kernel.PRIVATE)
    mounted = _mounted()
    kernel.mount("tmpfs", base, "tmpfs", options=f"mode=0755,{_SIZE}")
    root = f"{base}/root"
    for folder in (root, f"{base}/upper", f"{base}/work"):
        os.mkdir(folder)
    kernel.mount("tmpfs", root, "tmpfs", options=f"mode=0755,{_SIZE}")
    placed = sorted((_resolved(target), source, read_only) for source, target, read_only in mounts)
    points = [(target, os.path.isdir(source)) for target, source, _ in placed]
    _mirror_machine(base, root, points, mounted)
    _make_devices(f"{root}/dev")
    _show_processes(f"{root}/proc", own=own_processes)
    for target, source, read_only in placed:
        _bind(source, root + target, read_only=read_only)
    _move_into(root)


def _resolved(target: str) -> str:
    """Where the target really is: /var/run is a link to /run on most machines."""
    return os.path.realpath(os.path.join("/", target))


def _mirror_machine(base: str, root: str, points: list[tuple[str, bool]], mounted: list[str]) -> None:
    for name in os.listdir("/"):
        source, target = f"/{name}", f"{root}/{name}"
        if name in _OWN or os.path.islink(source) or not os.path.isdir(source):
            _mirror_entry(source, target)
        elif _overlaid(base, name, target, points):
            _show_mounts(source, target, mounted)
        else:
            _mirror(source, target, [point for point, _ in points])


def _mirror_entry(source: str, target: str) -> None:
    """One entry of a folder; what cannot be shown is left out."""
    if os.path.islink(source):
        os.symlink(os.readlink(source), target)
    elif os.path.basename(target) in {"dev", "proc"} and os.path.dirname(source) == "/":
        os.mkdir(target)
    elif os.path.exists(source):
        _make_point(target, folder=os.path.isdir(source))
        kernel.mount(source, target, flags=_BIND)


def _overlaid(base: str, name: str, target: str, points: list[tuple[str, bool]]) -> bool:
    """The machine's folder under a layer of the container's own, in which the mount points are; False if that fails."""
    upper, work, lower = f"{base}/upper/{name}", f"{base}/work/{name}", f"/{name}"
    os.mkdir(work)
    _make_like(lower, upper)
    os.mkdir(target)
    try:
        for point, folder in points:
            if point.startswith(f"{lower}/"):
                _make_points(base, point, folder=folder)
        options = f"lowerdir={lower},upperdir={upper},workdir={work}"
        kernel.mount("overlay", target, "overlay", options=options)
    except OSError:
        os.rmdir(target)
        return False
    return True


def _make_points(base: str, point: str, *, folder: bool) -> None:
    """The folders on the way to the point in the upper layer, as they are below; and the point, if it is nowhere."""
    above, _, _ = point.rpartition("/")
    way = ""
    for part in above.split("/")[1:]:
        way += f"/{part}"
        if not os.path.exists(f"{base}/upper{way}"):
            _make_like(way, f"{base}/upper{way}")
    if not os.path.exists(point):
        _make_point(f"{base}/upper{point}", folder=folder)


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
    """Where something is mounted on this machine, but for places with blanks in their names."""
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as lines:
        found = {line.split(" ")[4] for line in lines}
    return sorted(point for point in found if "\\" not in point)


def _show_mounts(source: str, target: str, mounted: list[str]) -> None:
    """The topmost mounts inside a folder: an overlay does not show them."""
    below = [point for point in mounted if point.startswith(f"{source}/")]
    for point in below:
        if not any(point.startswith(f"{other}/") for other in below):
            kernel.mount(point, f"{target}{point.removeprefix(source)}", flags=_BIND)


def _mirror(source: str, target: str, points: list[str]) -> None:
    """A folder with all that is in the machine's; those on the way to a mount point are made anew, so that it fits in."""
    if not any(point.startswith(f"{source}/") for point in points):
        _mirror_entry(source, target)
        return
    os.mkdir(target)
    for name in os.listdir(source):
        inner = f"{source}/{name}"
        if os.path.isdir(inner) and not os.path.islink(inner):
            _mirror(inner, f"{target}/{name}", points)
        else:
            _mirror_entry(inner, f"{target}/{name}")


def _make_point(target: str, *, folder: bool) -> None:
    if folder:
        os.makedirs(target, exist_ok=True)
    elif not os.path.lexists(target):
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o666))


def _make_devices(folder: str) -> None:
    kernel.mount("tmpfs", folder, "tmpfs", options="mode=0755,size=64k")
    for name in _DEVICES:
        _mirror_entry(f"/dev/{name}", f"{folder}/{name}")
    for name in ("pts", "mqueue"):
        _mirror_entry(f"/dev/{name}", f"{folder}/{name}")
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


def _bind(source: str, target: str, *, read_only: bool) -> None:
    _make_point(target, folder=os.path.isdir(source))
    kernel.mount(source, target, flags=_BIND)
    if read_only:
        kept = os.statvfs(target).f_flag & 0b1110  # nosuid, nodev and noexec may not be taken away
        kernel.mount("", target, flags=kernel.REMOUNT | kernel.BIND | kernel.READ_ONLY | kept)


def _move_into(root: str) -> None:
    os.chdir(root)
    kernel.pivot_root(".", ".")
    kernel.unmount(".", kernel.DETACH)
    os.chdir("/")
