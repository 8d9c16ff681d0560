"""What is said while a watch cannot go on."""

from __future__ import annotations

import asyncio
import logging
import random

import pytest

from gadgets import Gadget
from model_server import ModelServer
from navarch._base.clock import ManualClock
from navarch._base.tasks import cancel_and_wait
from navarch.cache import Cached, Collection, Informer
from navarch.cache.informer import State


async def test_first_list_is_one_request() -> None:
    """Whatever the server's version, which is not asked for; the watch goes on where the list ends."""
    clock = ManualClock()
    server = ModelServer(Gadget, clock=clock)
    client = server.client()
    for number in range(3):
        await client.create(Gadget(name=f"g{number}"))
    server.requests.clear()
    collection: Collection[Gadget] = Collection(Cached(Gadget))
    informer = Informer(client, collection, None, clock, random.Random(1))
    async with asyncio.TaskGroup() as group:
        task = group.create_task(informer.run())
        await informer.wait_synced()
        await clock.advance(1)
        await cancel_and_wait(task)
    listed, watched = server.requests
    assert listed.query == {}
    assert watched.query["resourceVersion"] == str(server.store.version)
    assert "sendInitialEvents" not in watched.query
    assert len(collection.store) == 3


async def warnings_after_withdrawal(caplog: pytest.LogCaptureFixture, *, may_go: bool) -> list[str]:
    """What is warned of when a kind is not served any more, for five minutes."""
    clock = ManualClock()
    server = ModelServer(Gadget, clock=clock)
    collection: Collection[Gadget] = Collection(Cached(Gadget))
    informer = Informer(server.client(), collection, None, clock, random.Random(1), may_go=may_go)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(informer.run())
        await informer.wait_synced()
        server.withdraw(Gadget)
        await clock.advance(300)
        assert informer.state is State.WAITING
        await cancel_and_wait(task)
    return [
        record.getMessage()
        for record in caplog.records
        if record.name == "navarch.cache" and record.levelno >= logging.WARNING
    ]


async def test_what_goes_wrong_again_and_again_is_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    """That the watch has ended, and that there is nothing to list: not once more each half minute."""
    warned = await warnings_after_withdrawal(caplog, may_go=False)
    assert 1 <= len(warned) <= 2
    assert len(set(warned)) == len(warned)
    assert "does not serve" in warned[-1]


async def test_kind_that_may_go_is_not_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    """Definitions come and go in a cluster."""
    assert await warnings_after_withdrawal(caplog, may_go=True) == []
