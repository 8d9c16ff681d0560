"""lightkube, its asynchronous client on uvloop like ours."""

import sys
import time
from functools import partial

import uvloop
from lightkube import AsyncClient
from lightkube.generic_resource import create_namespaced_resource

from peers import work
from peers.applying import apply_each
from widgets import GROUP, NAMESPACE, PLURAL, VERSION, manifest

Widget = create_namespaced_resource(GROUP, VERSION, "Widget", PLURAL)


async def list_all(client: AsyncClient, *, read: bool = False) -> None:
    began = time.perf_counter()
    found = [one async for one in client.list(Widget, namespace=NAMESPACE, chunk_size=500)]
    if read:
        assert sum(one.spec["replicas"] for one in found)
    work.report(began, len(found))


async def read_all(client: AsyncClient) -> None:
    await list_all(client, read=True)


async def apply_all(client: AsyncClient) -> None:
    wanted = [Widget(manifest(number, work.replicas())) for number in range(work.APPLIES)]
    await apply_each(wanted, partial(client.apply, force=True))


async def main() -> None:
    client = AsyncClient(field_manager=work.MANAGER)
    await {"list": list_all, "read": read_all, "apply": apply_all}[sys.argv[1]](client)


uvloop.run(main())
