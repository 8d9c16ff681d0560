"""navarch."""

import asyncio
import sys
import time

import uvloop

from navarch import connect, load
from peers import work
from widgets import NAMESPACE, Widget, widget


async def list_all(*, read: bool = False) -> None:
    async with connect(load()) as client:
        began = time.perf_counter()
        found = await client.list(Widget, namespace=NAMESPACE)
        if read:
            assert sum(one.spec.replicas for one in found)
        work.report(began, len(found))


async def read_all() -> None:
    await list_all(read=True)


async def apply_all() -> None:
    wanted = [widget(number, work.replicas()) for number in range(work.APPLIES)]
    async with connect(load()) as client:
        writer, began, left = client.using(manager=work.MANAGER), time.perf_counter(), iter(wanted)

        async def apply_some() -> None:
            for one in left:
                await writer.apply(one, force=True)

        async with asyncio.TaskGroup() as group:
            for _ in range(work.AT_A_TIME):
                group.create_task(apply_some())
        work.report(began, len(wanted))


uvloop.run({"list": list_all, "read": read_all, "apply": apply_all}[sys.argv[1]]())
