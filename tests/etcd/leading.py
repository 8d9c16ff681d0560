"""Who leads."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from navarch.etcd import EtcdClient

SECONDS = 60.0


async def until_led(etcd: EtcdClient, urls: Sequence[str]) -> None:
    """Returns when those members agree that one of them leads: a write before that may go astray."""
    async with asyncio.timeout(SECONDS):
        while True:
            states = [await etcd.maintenance.status(url) for url in urls]
            leaders = {state.leader for state in states}
            if len(leaders) == 1 and leaders <= {state.header.member_id for state in states}:
                return
