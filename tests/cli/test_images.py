"""`navarch cluster image` registers programs as images."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from cli.programs import Program
from navarch.client import Client, connect
from navarch.k8s.core.v1 import Container, Pod, PodSpec

SECONDS = 60.0


@pytest.fixture
def made(program: Program) -> Program:
    """A cluster that was made, and does not run."""
    (program.root / "dev").mkdir(parents=True)
    return program


def images_of(program: Program) -> dict[str, dict[str, Any]]:
    return {row["image"]: row for row in program.json("cluster", "image", "list", "--name", "dev")}


def test_images_are_added_listed_and_removed(made: Program) -> None:
    """Added images are listed beside the machine's, with the absolute path of the program and its arguments."""
    added = made.run("cluster", "image", "add", "team/app:v1.2", "--name", "dev", "--", "sh", "-c", "echo $(POD_IP)")
    assert added.returncode == 0, added.stderr
    found = images_of(made)
    row = found["team/app:1.2"]
    assert Path(row["program"].split()[0]).is_absolute()
    assert row["program"].endswith("sh -c echo $(POD_IP)")
    assert (row["from"], found["python"]["from"]) == ("added", "machine")
    assert "team/app:1.2" in made.run("cluster", "image", "list", "--name", "dev").stdout
    assert made.run("cluster", "image", "remove", "team/app:v1.2", "--name", "dev").returncode == 0
    assert "team/app:1.2" not in images_of(made)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("add", "app", "--", "no-such-program"), "expected an executable program, got 'no-such-program'"),
        (("add", "app", "--env", "X", "--", "sh"), "expected an environment variable as NAME=VALUE, got 'X'"),
        (("remove", "app"), "expected an image that was added, got 'app'; added were: none"),
    ],
)
def test_what_is_no_image_is_refused(made: Program, arguments: tuple[str, ...], said: str) -> None:
    """Errors are one sentence, with exit code 1."""
    verb, *rest = arguments
    result = made.run("cluster", "image", verb, "--name", "dev", *rest)
    assert result.returncode == 1
    assert said in result.stderr
    assert "Traceback" not in result.stderr


async def test_a_running_cluster_knows_a_new_image_at_once(program: Program) -> None:
    """A refused container starts, with the image's arguments and variables before its own."""
    program.run("cluster", "up", "--name", "dev")
    script = "import os, sys; print(sys.argv[1:], os.environ['COLOUR'], file=open('/dev/termination-log', 'w'))"
    command = ("--env", "COLOUR=red", "--", sys.executable, "-c", script, "$(POD_NAME)")
    assert program.run("cluster", "image", "add", "app", "--name", "dev", *command).returncode == 0
    async with connect(program.kubeconfig()) as client:
        container = Container(name="main", image="example.com/app", args=["mine"])
        await client.create(Pod(name="once", spec=PodSpec(containers=[container], restart_policy="Never")))
        pod = await _succeeded(client)
    state = (pod.status.container_statuses or [])[0].state
    assert state is not None
    assert state.terminated is not None
    assert state.terminated.message == "['once', 'mine'] red\n"


async def _succeeded(client: Client) -> Pod:
    limit = client.clock.monotonic() + SECONDS
    while (pod := await client.get(Pod, "once")).status.phase != "Succeeded":
        assert client.clock.monotonic() < limit, f"expected the pod to succeed, got {pod!r}"
        await client.clock.sleep(0.05)
    return pod
