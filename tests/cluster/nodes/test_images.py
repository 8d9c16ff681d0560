"""Images are names of programs of this machine."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from cluster.nodes.machines import Machine, is_ready, shell, status_of, waits_for
from navarch.cluster.nodes.images import Image, Images
from navarch.errors import ConfigError, ContainerError, InvalidValueError
from navarch.k8s.core.v1 import Container, Pod, VolumeMount


async def test_an_unknown_image_is_told_and_waited_for(machine: Machine) -> None:
    """The container waits with ErrImagePull, then ImagePullBackOff, which name the known images; it starts once the
    image exists.
    """
    await machine.create(Container(name="main", image="example.com/team/app:1", args=["sleep 100"]))
    await machine.until(lambda pod: waits_for(pod) == "ErrImagePull")
    pod = await machine.until(lambda pod: waits_for(pod) == "ImagePullBackOff")
    assert pod.status.phase == "Pending"
    assert "this machine has" in await machine.noted("Failed")
    machine.images.add(Image(name="example.com/team/app", argv=("/bin/sh", "-c")))
    await machine.until(is_ready)


async def test_a_missing_program_is_told(machine: Machine) -> None:
    """The container fails with RunContainerError and exit code 128, and is retried."""
    await machine.create(Container(name="main", image="busybox", command=["no-such-program"]))
    pod = await machine.until(lambda pod: status_of(pod).restart_count >= 1)
    assert 'exec: "no-such-program": executable file not found in $PATH' in await machine.noted("Failed")
    last = status_of(pod).last_state
    assert last is not None
    assert last.terminated is not None
    assert (last.terminated.exit_code, last.terminated.reason) == (128, "StartError")


async def test_a_pod_of_etcd_runs(machine: Machine) -> None:
    """The etcd of this machine runs by its version, with the command of its image; two pods use the same ports."""
    version = next(image.version for image in machine.images if image.name == "etcd")
    urls = ["--listen-client-urls=http://$(IP):2379", "--advertise-client-urls=http://$(IP):2379"]
    peers = ["--listen-peer-urls=http://$(IP):2380", "--initial-advertise-peer-urls=http://$(IP):2380"]
    for name in ("one", "two"):
        container = Container(
            name="main",
            image=f"quay.io/coreos/etcd:v{version}",
            command=[
                "/usr/local/bin/etcd",
                *urls,
                *peers,
                "--initial-cluster=default=http://$(IP):2380",
                "--data-dir=/data/default.etcd",
            ],
            volume_mounts=[VolumeMount(name="data", mount_path="/data")],
        )
        container.env = [{"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]  # type: ignore[list-item]
        container.readiness_probe = {"httpGet": {"path": "/health", "port": 2379}, "periodSeconds": 1}  # type: ignore[assignment]
        await machine.create(container, name=name, volumes=[{"name": "data", "emptyDir": {}}])
    for name in ("one", "two"):
        pod = await machine.until(is_ready, name=name)
    health = ("sh", "-c", "etcdctl --endpoints=http://$IP:2379 endpoint health 2>&1")
    await machine.cluster.eventually(
        lambda: machine.output(pod, *health), lambda said: "is healthy" in said, timeout=60, what="a healthy member"
    )


async def test_a_pod_of_memcached_runs(machine: Machine) -> None:
    """memcached listens on its pod's address without being told to."""
    await machine.run(Container(name="main", image="memcached:1.6", readiness_probe=None), name="cache")
    pod = await machine.until(is_ready, name="cache")
    assert pod.status.pod_ip is not None
    address = pod.status.pod_ip
    await machine.cluster.eventually(lambda: _is_taken(11211, address), bool)
    reader, writer = await asyncio.open_connection(address, 11211)
    writer.write(b"set word 0 0 5\r\nhello\r\nget word\r\n")
    lines = [await reader.readline() for _ in range(4)]
    writer.close()
    assert lines == [b"STORED\r\n", b"VALUE word 0 5\r\n", b"hello\r\n", b"END\r\n"]


async def test_a_port_that_is_taken_fails_the_program(machine: Machine) -> None:
    """A port that another container of the pod has fails the program, which is restarted later."""
    script = "import socket, time; s = socket.create_server(('0.0.0.0', 9090)); time.sleep(1000)"
    first, second = (Container(name=name, image="python", args=["-c", script]) for name in ("first", "second"))
    await machine.create(first, second)
    pod = await machine.until(lambda pod: max(_restarts(pod)) >= 1 and min(_restarts(pod)) == 0)
    failed = "first" if status_of(pod, "first").restart_count else "second"
    assert "Address already in use" in await machine.log(pod, failed, previous=True)


def _restarts(pod: Pod) -> list[int]:
    return [status.restart_count for status in pod.status.container_statuses or []] or [0]


async def _is_taken(port: int, address: str) -> bool:
    try:
        _, writer = await asyncio.open_connection(address, port)
    except OSError:
        return False
    writer.close()
    return True


@pytest.mark.parametrize(
    ("reference", "fits"),
    [
        ("etcd:3.5.1", True),
        ("quay.io/coreos/etcd:v3.5.1", True),
        ("registry.k8s.io/etcd:3.5.1-0", True),
        ("etcd:v3.5", True),
        ("etcd", True),
        ("etcd:latest", True),
        ("etcd:v3.5.10", False),
        ("etcd:v3.6.0", False),
        ("my-etcd:v3.5.1", False),
    ],
)
def test_names_and_versions(reference: str, fits: bool) -> None:
    """A tag means a version that is installed, or no image at all."""
    images = Images((Image(name="etcd", argv=("/opt/etcd",), version="3.5.1"),))
    images._installed = ()
    if fits:
        assert images.find(reference).argv == ("/opt/etcd",)
    else:
        with pytest.raises(ContainerError, match=r"etcd:3\.5\.1"):
            images.find(reference)


def test_images_are_kept_in_a_file(tmp_path: Path) -> None:
    """An added image is there after a reload, a removed one is not."""
    path = tmp_path / "state" / "images.json"
    images = Images.load(path)
    images.add(Image(name="app", argv=("/opt/app",), version="1", env={"A": "b"}))
    images.add(Image(name="app", argv=("/opt/new",), version="1"))
    images.add(Image(name="other", argv=(sys.executable,)))
    assert Images.load(path).find("app:1").argv == ("/opt/new",)
    Images.load(path).add(Image(name="of-another-process", argv=("/opt/it",)))
    assert images.find("of-another-process:7").argv == ("/opt/it",)
    images.remove("other")
    with pytest.raises(InvalidValueError, match="app:1"):
        images.remove("other")
    with pytest.raises(ContainerError):
        Images.load(path).find("other")
    path.write_text("rubbish")
    with pytest.raises(ConfigError, match="expected a list of images"):
        Images.load(path)


async def test_installed_programs_are_found(machine: Machine) -> None:
    """Python and a shell are always there; the names of all images stand on the node."""
    names = {image.name for image in machine.images}
    assert {"python", "busybox", "pause", "memcached"} <= names
    pod = await machine.ended(shell("echo $0"))
    assert status_of(pod).image_id == "busybox"
