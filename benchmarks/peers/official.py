"""kubernetes, the official client: synchronous, in threads where several calls go on at once."""

import sys
import time
from concurrent.futures import ThreadPoolExecutor

from kubernetes import client, config

from peers import work
from widgets import GROUP, NAMESPACE, PLURAL, VERSION, manifest


def list_all(api: client.CustomObjectsApi, *, read: bool = False) -> None:
    began = time.perf_counter()
    found, token = [], None
    while True:
        page = api.list_namespaced_custom_object(GROUP, VERSION, NAMESPACE, PLURAL, limit=500, _continue=token)
        found += page["items"]
        token = page["metadata"].get("continue")
        if not token:
            break
    if read:
        assert sum(one["spec"]["replicas"] for one in found)
    work.report(began, len(found))


def read_all(api: client.CustomObjectsApi) -> None:
    list_all(api, read=True)


def apply_all(api: client.CustomObjectsApi) -> None:
    wanted = [manifest(number, work.replicas()) for number in range(work.APPLIES)]

    def apply(body: dict) -> None:
        api.patch_namespaced_custom_object(
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

    began = time.perf_counter()
    with ThreadPoolExecutor(work.AT_A_TIME) as pool:
        list(pool.map(apply, wanted))
    work.report(began, len(wanted))


config.load_kube_config()
settings = client.Configuration.get_default_copy()
settings.connection_pool_maxsize = work.AT_A_TIME
{"list": list_all, "read": read_all, "apply": apply_all}[sys.argv[1]](
    client.CustomObjectsApi(client.ApiClient(settings))
)
