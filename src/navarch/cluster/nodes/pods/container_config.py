"""Computes the configuration of a container's start: command, environment, mounts, account; and its termination
message.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from navarch.cluster.nodes.images import Image, values_of
from navarch.cluster.nodes.images.user import ImageUser, find_user
from navarch.cluster.nodes.pods.environment import Environment, expanded
from navarch.cluster.nodes.pods.sandbox import PodSandbox
from navarch.cluster.nodes.runtime import Account, ContainerConfig, Exit, Mount
from navarch.cluster.nodes.volumes.atomic_writer import check_depth
from navarch.errors import ContainerError
from navarch.k8s.core.v1 import Container, VolumeMount

_LONGEST: Final = 4096
_LONGEST_LOG: Final = 2048
_MOST_LINES: Final = 80
_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_MESSAGE: Final = "/dev/termination-log"
_MOST_LOGS: Final = 2
_RESOLVER: Final = "/etc/resolv.conf"


def termination_message(sandbox: PodSandbox, container: Container, attempt: int, exit_: Exit) -> str | None:
    """Returns the content of the termination message file or, if the policy says so and the container failed, the end
    of its log.
    """
    words = _tail_of(sandbox, message_file(sandbox, container.name, attempt), _LONGEST)
    if words or exit_.code == 0 or container.termination_message_policy != "FallbackToLogsOnError":
        return words or None
    tail = _tail_of(sandbox, sandbox.log(container.name, attempt), _LONGEST_LOG * 2)
    lines = [line.split(" ", 3)[-1] for line in tail.splitlines() if line.count(" ") >= 3]
    return "\n".join([*lines[-_MOST_LINES:], ""])[-_LONGEST_LOG:] or None


def _tail_of(sandbox: PodSandbox, path: str, size: int) -> str:
    try:
        with sandbox.folder.open() as folder:
            return folder.read(path, size, from_end=True).decode(errors="replace")
    except OSError:
        return ""


async def generate_container_config(
    sandbox: PodSandbox, container: Container, image: Image, attempt: int
) -> ContainerConfig:
    """Returns the configuration of a start; raises `ContainerError` if something that the container refers to does not
    exist.
    """
    environment = Environment(
        sandbox.deps.client, sandbox.pod, sandbox.placement, await sandbox.deps.network.services()
    )
    given = await environment.of(container)
    env = {**_basic(sandbox, container, image), **given}
    _make_folder(sandbox, container, attempt)
    security = container.security_context
    return ContainerConfig(
        id=_identity(sandbox, container, attempt),
        argv=_command(sandbox, container, image, env),
        env=env,
        log=sandbox.folder.path / sandbox.log(container.name, attempt),
        folder=container.working_dir or image.working_dir or "/",
        hostname=sandbox.hostname,
        mounts=await _mounts(sandbox, container, image, env, attempt),
        account=_account(sandbox, container, image),
        stdin=container.stdin is True,
        stdin_once=container.stdin_once is True,
        tty=container.tty is True,
        privileged=security is not None and security.privileged is True,
        address=sandbox.placement.address,
        root=Path(image.root) if image.root else None,
        read_only=security is not None and security.read_only_root_filesystem is True,
    )


def _identity(sandbox: PodSandbox, container: Container, attempt: int) -> str:
    text = f"{sandbox.uid}/{container.name}/{attempt}/{sandbox.deps.clock.now().timestamp()}"
    return hashlib.sha256(text.encode()).hexdigest()


def message_file(sandbox: PodSandbox, container: str, attempt: int) -> str:
    """Returns the path of the termination message file in the pod's folder."""
    return f"{sandbox.container_folder(container)}/{attempt}.message"


def _make_folder(sandbox: PodSandbox, container: Container, attempt: int) -> None:
    """Prepares the folder of the logs; keeps the logs of the last start."""
    message = message_file(sandbox, container.name, attempt).rpartition("/")[2]
    with sandbox.folder.open(sandbox.container_folder(container.name), create=0o755) as folder:
        for name in folder.list():
            number = name.split(".", 1)[0]
            if name == message or not number.isdecimal() or int(number) <= attempt - _MOST_LOGS:
                folder.remove_all(name)
        folder.create(message, b"", 0o666)


def _basic(sandbox: PodSandbox, container: Container, image: Image) -> dict[str, str]:
    """Returns the variables of every program: PATH, HOME, HOSTNAME, TERM and those of the image."""
    if image.root:
        path, home = _PATH, _user_of(sandbox, container, image).home
    else:
        path, home = os.environ.get("PATH", _PATH), os.environ.get("HOME", "/")
    found = {
        "PATH": f"{image.folder}:{path}" if image.folder else path,
        "HOME": home,
        "HOSTNAME": sandbox.hostname,
    }
    return {**found, **({"TERM": "xterm"} if container.tty else {}), **image.env}


def _command(sandbox: PodSandbox, container: Container, image: Image, env: Mapping[str, str]) -> tuple[str, ...]:
    args = tuple(expanded(text, env) for text in container.args or [])
    own = values_of(sandbox.placement.address, sandbox.pod.name, sandbox.pod.namespace)
    always = tuple(expanded(text, own) for text in image.always)
    if not container.command:
        found = (*image.argv, *always, *(args or image.args))
        if not found:
            raise ContainerError(
                f"no command specified: image {image.identity} has none, and neither has container {container.name}"
            )
        return found
    program, *rest = (expanded(text, env) for text in container.command)
    if image.root:
        return (program, *rest, *args)
    located = _located(program, image)
    if located == image.argv[0] or Path(program).name == image.name.rpartition("/")[2]:
        return (*image.argv, *always, *rest, *args)
    return (located, *rest, *args)


def _located(program: str, image: Image) -> str:
    """Returns the path of a program of the image on this machine: beside the image's own program."""
    if "/" not in program or Path(program).exists() or not image.folder:
        return program
    beside = Path(image.folder) / Path(program).name
    return str(beside) if beside.exists() else program


def _account(sandbox: PodSandbox, container: Container, image: Image) -> Account:
    pod, own = sandbox.pod.spec.security_context, container.security_context
    group = own.run_as_group if own and own.run_as_group is not None else pod.run_as_group if pod else None
    wants = own.run_as_non_root if own and own.run_as_non_root is not None else pod.run_as_non_root if pod else None
    user = _run_as_user(sandbox, container)
    if image.root:
        found = _user_of(sandbox, container, image)
        if wants and user is None and found.is_named:
            raise ContainerError(
                f"container has runAsNonRoot and image has non-numeric user ({image.user}), cannot verify user is "
                f"non-root (container: {container.name})"
            )
        user, group = found.uid, found.gid if group is None else group
    if wants and (os.geteuid() if user is None else user) == 0:
        name = f"{sandbox.pod.name}_{sandbox.pod.namespace}({sandbox.uid})"
        raise ContainerError(
            f'container has runAsNonRoot and image will run as root (pod: "{name}", container: {container.name})'
        )
    extra = [*(pod.supplemental_groups or []), *([pod.fs_group] if pod.fs_group is not None else [])] if pod else []
    return Account(user=user, group=group, groups=tuple(extra))


def _run_as_user(sandbox: PodSandbox, container: Container) -> int | None:
    pod, own = sandbox.pod.spec.security_context, container.security_context
    return own.run_as_user if own and own.run_as_user is not None else pod.run_as_user if pod else None


def _user_of(sandbox: PodSandbox, container: Container, image: Image) -> ImageUser:
    """Returns the user that a container of an unpacked image runs as."""
    chosen = _run_as_user(sandbox, container)
    return find_user(Path(image.root), image.user if chosen is None else str(chosen))


async def _mounts(
    sandbox: PodSandbox, container: Container, image: Image, env: Mapping[str, str], attempt: int
) -> tuple[Mount, ...]:
    folder, message = sandbox.folder.path, container.termination_message_path or _MESSAGE
    check_depth(message, "terminationMessagePath")
    found = [
        Mount(folder / "hostname", "/etc/hostname"),
        Mount(folder / message_file(sandbox, container.name, attempt), message),
        *[await _mount(sandbox, mount, env) for mount in container.volume_mounts or []],
    ]
    mounted = {mount.target for mount in found}
    if not sandbox.pod.spec.host_network and "/etc/hosts" not in mounted:
        found.append(Mount(folder / "hosts", "/etc/hosts"))
    if image.root and _RESOLVER not in mounted:
        found += _machine_files(_RESOLVER)
    return tuple(found)


def _machine_files(*paths: str) -> list[Mount]:
    """Returns mounts of files of this machine, which an image does not have; an absent file is left out."""
    return [Mount(Path(path), path, read_only=True) for path in paths if Path(path).is_file()]


async def _mount(sandbox: PodSandbox, mount: VolumeMount, env: Mapping[str, str]) -> Mount:
    below = (expanded(mount.sub_path_expr, env) if mount.sub_path_expr else mount.sub_path) or ""
    if "\0" in mount.mount_path:
        raise ContainerError(f"mountPath {mount.mount_path!r} cannot contain a NUL character")
    check_depth(mount.mount_path, "mountPath")
    if below:
        await sandbox.volumes.prepare_sub_path(mount.name, below)
    read_only = mount.read_only is True or sandbox.volumes.is_read_only(mount.name)
    return Mount(sandbox.volumes.path(mount.name), mount.mount_path, read_only, below)
