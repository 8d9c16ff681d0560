"""On a machine that refuses namespaces, as Ubuntu and containers do, pods work all the same."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cluster.nodes import refusing
from cluster.nodes.machines import Machine, end_of, long_while, running_machine, shell, sleeping
from navarch.client import MergePatch
from navarch.cluster.nodes.runtime import ContainerConfig, Mount
from navarch.errors import ContainerError
from navarch.k8s.core.v1 import ConfigMap, Service, ServicePort, ServiceSpec
from navarch.testing.cluster import in_process

PYTHON = (sys.executable, str(Path(refusing.__file__)), sys.executable, "-I", "-S")
DATA = {"name": "data", "emptyDir": {}}


@pytest.fixture
async def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Machine]:
    """A process node on a machine that gives no namespaces."""
    monkeypatch.setattr("navarch.cluster.nodes.shim.runtime._PYTHON", PYTHON)
    async with in_process() as cluster, running_machine(cluster, tmp_path) as made:
        yield made


async def test_node_says_what_its_machine_refuses(machine: Machine) -> None:
    """The node's annotation names each limit and its consequence."""
    assert any("no process namespaces" in limit for limit in machine.shim.limits)
    assert any("no mount namespaces" in limit and "by where they are" in limit for limit in machine.shim.limits)
    assert not any("do not resolve" in limit for limit in machine.shim.limits)


async def test_volume_is_at_its_place_for_a_program_that_was_not_told_of_it(machine: Machine) -> None:
    """A program creates, stats, renames and removes files at a mount path that the machine does not have."""
    program = (
        "import os, pathlib; place = pathlib.Path('/'.join(['', 'var', 'lib', 'nowhere']));"
        "(place / 'made').mkdir(); (place / 'made' / 'a').write_text('word');"
        "os.rename(place / 'made' / 'a', place / 'b'); (place / 'made').rmdir();"
        "print(sorted(os.listdir(place)), (place / 'b').stat().st_size, (place / 'a').exists())"
    )
    container = shell(f'"{sys.executable}" -c "$PROGRAM"', env=[{"name": "PROGRAM", "value": program}])
    container.volume_mounts = [{"name": "data", "mountPath": "/var/lib/nowhere"}]  # type: ignore[list-item]  # as in YAML
    pod = await machine.ended(container, volumes=[DATA])
    assert await machine.log(pod) == "['b'] 4 False\n"
    assert not _is_there("/var/lib/nowhere")


async def test_volume_is_named_by_where_it_is_in_commands_and_variables(machine: Machine) -> None:
    """Mount paths in commands and variables are replaced, so that a program in a volume can be executed."""
    mounts = [{"name": "data", "mountPath": "/scripts"}]
    made = "printf '#!/bin/sh\\necho run from $(pwd)' > /scripts/run; chmod +x /scripts/run; $RUN | grep -c /data"
    container = shell(
        made, env=[{"name": "RUN", "value": "/scripts/run"}], working_dir="/scripts", volume_mounts=mounts
    )
    pod = await machine.ended(container, volumes=[DATA])
    assert (end_of(pod).exit_code, await machine.log(pod)) == (0, "1\n")


async def test_part_of_a_volume_is_read_by_its_mount_path_and_by_where_it_is(machine: Machine) -> None:
    """A file of a ConfigMap, which is a link in its volume, can be read as a subPath; the rest of the volume cannot."""
    await machine.cluster.create(ConfigMap(name="settings", data={"a": "1", "b": "2"}))
    mounts = [{"name": "settings", "mountPath": "/etc/app/a.conf", "subPath": "a", "readOnly": True}]
    script = "cat /etc/app/a.conf $(echo /etc/ap)p/a.conf; cat $(dirname /etc/app/a.conf)/b || echo refused"
    volumes = [{"name": "settings", "configMap": {"name": "settings"}}]
    pod = await machine.ended(shell(f"( {script} ) 2> /dev/null", volume_mounts=mounts), volumes=volumes)
    assert await machine.log(pod) == "11refused\n"


async def test_mount_of_nothing_is_reported(machine: Machine) -> None:
    """A container does not start without its volume, as on a machine where mounts fail."""
    mounts = (Mount(machine.folder / "nothing", "/data"),)
    log = machine.folder / "log"
    launch = ContainerConfig(id="a", argv=("true",), env={"PATH": os.environ["PATH"]}, log=log, mounts=mounts)
    with pytest.raises(ContainerError, match="No such file or directory"):
        await machine.shim.start(launch)


async def test_file_is_moved_into_a_volume_from_where_a_program_is(machine: Machine) -> None:
    """A relative path is relative to the program's directory, not to the shim's."""
    own = machine.folder / "own"
    mounts = [{"name": "data", "mountPath": "/data"}]
    script = f"mkdir {own}; cd {own}; echo word > x; mv x $(echo /da)ta/y; cat /data/y; ls"
    pod = await machine.ended(shell(script, volume_mounts=mounts), volumes=[DATA])
    assert await machine.log(pod) == "word\n"


async def test_volume_that_is_only_to_be_read_is_not_written(machine: Machine) -> None:
    """A read-only volume refuses writes, as on any machine."""
    mounts = [{"name": "data", "mountPath": "/data", "readOnly": True}]
    place = "$(echo /da)ta/x"
    pod = await machine.ended(shell(f"echo no > {place} || echo refused", volume_mounts=mounts), volumes=[DATA])
    assert "refused\n" in await machine.log(pod)


async def test_volume_that_is_also_mounted_writable_is_not_written_by_its_read_only_path(machine: Machine) -> None:
    """Each mount of a volume has a mode of its own."""
    mounts = [{"name": "data", "mountPath": "/data"}, {"name": "data", "mountPath": "/fixed", "readOnly": True}]
    script = "( echo word > /data/x; echo no > /fixed/x || echo refused; cat /fixed/x ) 2> /dev/null"
    pod = await machine.ended(shell(script, volume_mounts=mounts), volumes=[DATA])
    assert await machine.log(pod) == "refused\nword\n"


async def test_names_resolve_and_follow_the_cluster(machine: Machine) -> None:
    """Names of services resolve, also of later ones; a program sees that its hosts file has changed."""
    pod = await machine.run(shell("sleep 100"))
    made = await machine.cluster.create(Service(name="late", spec=ServiceSpec(ports=[ServicePort(port=80)])))
    lookup = [sys.executable, "-c", "import socket; print(socket.gethostbyname('late'))"]
    await machine.shows(pod, f"{made.spec.cluster_ip}\n", *lookup)


async def test_files_of_config_maps_follow_their_objects(machine: Machine) -> None:
    """The program and an exec both read the current files of a ConfigMap."""
    await machine.cluster.create(ConfigMap(name="settings", data={"size": "1"}))
    mounts = [{"name": "settings", "mountPath": "/etc/settings"}]
    pod = await machine.run(
        shell("sleep 100", volume_mounts=mounts), volumes=[{"name": "settings", "configMap": {"name": "settings"}}]
    )
    await machine.shows(pod, "1", "cat", "/etc/settings/size")
    await machine.cluster.client.patch(ConfigMap, "settings", MergePatch({"data": {"size": "2"}}))
    await machine.shows(pod, "2", "cat", "/etc/settings/size")


async def test_nothing_outlives_a_node_that_is_killed(machine: Machine) -> None:
    """Killing a node also kills processes that have left their session."""
    seconds = long_while()
    await machine.run(shell(f"setsid sleep {seconds} & (sleep {seconds} &); sleep {seconds}"))
    await machine.cluster.eventually(lambda: _sleeping(seconds), lambda count: count == 3, what="three that sleep")
    await machine.node.kill()
    await machine.cluster.eventually(lambda: _sleeping(seconds), lambda count: count == 0, what="nobody who sleeps")


def _is_there(path: str) -> bool:
    return Path(path).exists()


async def _sleeping(seconds: str) -> int:
    return len(sleeping(seconds))
