"""The block of loopback addresses of a cluster that was stopped and starts again."""

from __future__ import annotations

import asyncio

import pytest

from navarch._base.clock import ManualClock
from navarch.cluster.embedded.background_tasks import _stored_block
from navarch.cluster.nodes.network.addresses import LoopbackBlock
from navarch.errors import ConfigError


async def test_block_of_a_cluster_that_ends_is_waited_for() -> None:
    """A cluster that took the block meanwhile has some seconds to end."""
    clock, taken = ManualClock(), LoopbackBlock.take(250)
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(_stored_block(f"127.{taken.number}.0.1", clock))
        await clock.advance(2)
        assert not waiting.done()
        taken.close()
        await clock.advance(1)
    with_block = waiting.result()
    assert with_block.number == taken.number
    with_block.close()


async def test_block_that_stays_taken_is_refused() -> None:
    """The error names the addresses, and what to do."""
    clock, taken = ManualClock(), LoopbackBlock.take(250)
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(_refusal(taken, clock))
        await clock.advance(60)
    assert waiting.result() == f"another cluster uses the addresses 127.{taken.number}.x.y of this one; stop it first"
    taken.close()


async def _refusal(taken: LoopbackBlock, clock: ManualClock) -> str:
    with pytest.raises(ConfigError) as refused:
        await _stored_block(f"127.{taken.number}.0.1", clock)
    return str(refused.value)
