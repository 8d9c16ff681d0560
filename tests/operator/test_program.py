"""An operator as a whole program: what it says, and its exit code."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from faulty_server import Play, Received, faulty, http

PROGRAM = """
from navarch import Context, Operator, Resource, Spec, Status
from navarch.k8s.core.v1 import ConfigMap

operator = Operator("tested", crds="ignore", election={election}, check_permissions={check})

@operator.controller(ConfigMap)
async def reconcile(settings: ConfigMap, ctx: Context) -> None:
    print("reconciled", settings.name, flush=True)

operator.run()
"""
STUCK = """
import threading
from navarch import Context, Operator
from navarch.k8s.core.v1 import ConfigMap

operator = Operator("tested", crds="ignore", election=False, check_permissions=False, drain_seconds=0.1)

@operator.controller(ConfigMap)
def reconcile(settings: ConfigMap, ctx: Context) -> None:
    print("reconciled", settings.name, flush=True)
    threading.Event().wait()

operator.run()
"""
BOUND = 30.0


def program(*, election: bool = False, check: bool = False) -> str:
    return PROGRAM.format(election=election, check=check)


async def started(source: str, kubeconfig: Path) -> asyncio.subprocess.Process:
    """A program with nothing but this kubeconfig."""
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        source,
        env={**os.environ, "KUBECONFIG": str(kubeconfig)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def ended(process: asyncio.subprocess.Process) -> tuple[int | None, str]:
    """Its exit code, and what it said."""
    try:
        async with asyncio.timeout(BOUND):
            _, said = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return process.returncode, said.decode()


def kubeconfig(folder: Path, url: str) -> Path:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": {}}],
    }
    path = folder / "config"
    path.write_text(yaml.safe_dump(config))
    return path


def sentences(said: str) -> list[dict[str, Any]]:
    """The records at error level; the rest must be records too."""
    records = [json.loads(line) for line in said.splitlines()]
    return [record for record in records if record["level"] == "error"]


async def test_missing_kubeconfig_is_one_sentence(tmp_path: Path) -> None:
    """Without a traceback; the exit code is 1."""
    code, said = await ended(await started(program(), tmp_path / "nowhere"))
    assert code == 1
    (sentence,) = sentences(said)
    assert "nowhere" in sentence["why"]
    assert "Traceback" not in said


def answers(*, allowed: bool = True) -> Play:
    """A server that reviews access, has one config map, and watches in silence."""

    async def play(request: Received, writer: asyncio.StreamWriter) -> None:
        path = request.target.partition("?")[0]
        if path.endswith("/selfsubjectaccessreviews"):
            status: dict[str, Any] = {"allowed": allowed}
            body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "status": status}
            writer.write(http(json.dumps({**body, "metadata": {}, "spec": {}}).encode(), "201 Created"))
        elif "watch=true" in request.target:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
            await writer.drain()
            await request.more.read()
        elif path.endswith("/configmaps"):
            writer.write(http(json.dumps(_config_maps()).encode()))
        else:
            status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404, "reason": "NotFound"}
            writer.write(http(json.dumps(status).encode(), "404 Not Found"))
        await writer.drain()

    return play


def _config_maps() -> dict[str, Any]:
    found = {"metadata": {"name": "a", "namespace": "default", "uid": "u", "resourceVersion": "3"}}
    return {"apiVersion": "v1", "kind": "ConfigMapList", "metadata": {"resourceVersion": "5"}, "items": [found]}


async def test_missing_permissions_are_told_without_a_traceback(tmp_path: Path) -> None:
    """All of them in one report; the exit code is 1."""
    async with faulty(answers(allowed=False)) as server:
        code, said = await ended(await started(program(check=True), kubeconfig(tmp_path, server.url)))
    assert code == 1
    (sentence,) = sentences(said)
    assert "configmaps" in sentence["why"]
    assert "Traceback" not in said


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.long)])
@pytest.mark.parametrize("source", [program(), STUCK], ids=["idle", "a thread that never ends"])
async def test_signal_ends_in_good_order(tmp_path: Path, number: signal.Signals, source: str) -> None:
    """The exit code is 0, also if something could not be finished."""
    async with faulty(answers()) as server:
        process = await started(source, kubeconfig(tmp_path, server.url))
        assert process.stdout is not None
        try:
            async with asyncio.timeout(BOUND):
                said = await process.stdout.readline()
        finally:
            process.send_signal(number)
        assert said == b"reconciled a\n"
        code, told = await ended(process)
    assert (code, sentences(told)) == (0, [])
    assert "Traceback" not in told


async def test_server_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    """As soon as it is needed to start."""
    async with faulty(answers()) as server:
        nobody = server.url
    code, said = await ended(await started(program(check=True), kubeconfig(tmp_path, nobody)))
    assert code == 1
    assert len(sentences(said)) == 1
    assert "Traceback" not in said
