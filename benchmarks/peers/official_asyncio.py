"""kubernetes_asyncio, on uvloop like ours."""

import sys
import time

import uvloop
from kubernetes_asyncio import client, config

from peers import work
from peers.applying import apply_each
from widgets import GROUP, NAMESPACE, PLURAL, VERSION, manifest


async def list_all(api: client.CustomObjectsApi, *, read: bool = False) -> None:
    began = time.perf_counter()
    found, token = [], None
    while True:
        more = {"_continue": token} if token else {}
        page = await api.list_namespaced_custom_object(GROUP, VERSION, NAMESPACE, PLURAL, limit=500, **more)
        found += page["items"]
        token = page["metadata"].get("continue")
        if not token:
            break
    if read:
        assert sum(one["spec"]["replicas"] for one in found)
    work.report(began, len(found))


async def read_all(api: client.CustomObjectsApi) -> None:
    await list_all(api, read=True)


async def apply_all(api: client.CustomObjectsApi) -> None:
    wanted = [manifest(number, work.replicas()) for number in range(work.APPLIES)]

    async def apply(body: dict) -> None:
        await api.patch_namespaced_custom_object(
            GROUP,
            VERSION,
            NAMESPACE,
            PLURAL,
            body["metadata"]["name"],
            body,
            field_manager=work.MANAGER,
            force=True,
            _content_type="application/apply-patch+yaml",
        )

    await apply_each(wanted, apply)


async def main() -> None:
    await config.load_kube_config()
    async with client.ApiClient() as connection:
        await {"list": list_all, "read": read_all, "apply": apply_all}[sys.argv[1]](client.CustomObjectsApi(connection))


uvloop.run(main())
