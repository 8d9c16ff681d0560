"""`kopf run`: an operator as a process, with everything that its users get by default."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from chaos.waiting import until_none
from conformance.clients import kopf_operator, ships
from conformance.clients.ships import LIMIT, SHIP, ship
from navarch.client import Client
from navarch.errors import NotFound


@asynccontextmanager
async def kopf_run(kubeconfig: str, namespace: str, log: Path) -> AsyncIterator[None]:
    """The process while the block lasts; its output is in the file."""
    command = ["-m", "kopf", "run", "--standalone", f"--namespace={namespace}", kopf_operator.__file__]
    environment = {**os.environ, "KUBECONFIG": kubeconfig}
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            sys.executable, *command, env=environment, stdout=output, stderr=output
        )
    try:
        yield
    finally:
        process.terminate()
        async with asyncio.timeout(LIMIT):
            status = await process.wait()
    assert status == 0, f"expected kopf to end in order, got {status}: {said(log)}"


def said(log: Path) -> str:
    """What it has printed so far."""
    return log.read_text()


async def test_kopf_run_finds_the_cluster_and_serves_it(
    client: Client, kubeconfig: str, namespace: str, tmp_path: Path
) -> None:
    """By the KUBECONFIG, with the login it chooses; until it is told to end."""
    log = tmp_path / "kopf.log"
    await client.install(ships.DEFINITION)
    await client.create(ship("argo", crew=50))

    async def manned() -> str | None:
        status = (await client.get(SHIP, "argo")).get("status", {})
        return None if status.get("crew") == 50 else f"expected a crew, got {status}: {said(log)}"

    async def gone() -> str | None:
        try:
            return f"expected the ship to be gone, got {await client.get(SHIP, 'argo')}: {said(log)}"
        except NotFound:
            return None

    async with kopf_run(kubeconfig, namespace, log):
        await until_none(manned, seconds=LIMIT)
        await client.delete(SHIP, "argo")
        await until_none(gone, seconds=LIMIT)
    assert "she is scrapped" in said(log)
