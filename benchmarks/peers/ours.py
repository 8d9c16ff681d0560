"""navarch."""

import sys
import time
from functools import partial

import uvloop

from navarch import connect, load
from peers import work
from peers.applying import apply_each
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
        await apply_each(wanted, partial(client.using(manager=work.MANAGER).apply, force=True))


uvloop.run({"list": list_all, "read": read_all, "apply": apply_all}[sys.argv[1]]())
