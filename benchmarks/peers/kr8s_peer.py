"""kr8s, its asynchronous client. It has no server-side apply of its own, so its generic call is used for that."""

import asyncio
import json
import sys
import time

import kr8s.asyncio
from kr8s.asyncio.objects import new_class

from peers import work
from peers.applying import apply_each
from widgets import GROUP, NAMESPACE, PLURAL, VERSION, manifest

Widget = new_class("Widget", f"{GROUP}/{VERSION}", asyncio=True, namespaced=True, plural=PLURAL)


async def list_all(api: kr8s.asyncio.Api, *, read: bool = False) -> None:
    began = time.perf_counter()
    found = [one async for one in api.get(Widget, namespace=NAMESPACE)]
    if read:
        assert sum(one.spec.replicas for one in found)
    work.report(began, len(found))


async def read_all(api: kr8s.asyncio.Api) -> None:
    await list_all(api, read=True)


async def apply_all(api: kr8s.asyncio.Api) -> None:
    wanted = [manifest(number, work.replicas()) for number in range(work.APPLIES)]

    async def apply(body: dict) -> None:
        async with api.call_api(
            "PATCH",
            base=f"/apis/{GROUP}",
            version=VERSION,
            namespace=NAMESPACE,
            url=f"{PLURAL}/{body['metadata']['name']}",
            params={"fieldManager": work.MANAGER, "force": "true"},
            headers={"Content-Type": "application/apply-patch+yaml"},
            content=json.dumps(body),
        ):
            pass

    await apply_each(wanted, apply)


async def main() -> None:
    api = await kr8s.asyncio.api()
    await {"list": list_all, "read": read_all, "apply": apply_all}[sys.argv[1]](api)


asyncio.run(main())
