"""What a fresh control plane has, written to the package: `python -m fresh_cluster`; `--check` fails if it is stale.

Every object is created through a server, so that it has all that the server gives to objects. A cluster that starts copies
them.
"""

from __future__ import annotations

import asyncio
import random
import sys
import uuid

import msgspec

from navarch._base.clock import ManualClock
from navarch._base.supervisor import Supervisor
from navarch.cluster.embedded.bootstrap import FRESH, TEMPLATE_TIME, bootstrap_objects
from navarch.cluster.embedded.server_assembly import AssembledServer, ServerDeps
from navarch.cluster.server.kinds.builtin import builtin_types
from navarch.cluster.server.objects.types import Catalog
from navarch.cluster.server.pipeline.audit_log import AuditLog
from navarch.cluster.server.pipeline.authentication.signing import SigningKey
from navarch.cluster.server.wire.request import ApiRequest, Json, User
from navarch.cluster.storage import Stored
from navarch.cluster.storage.memory import MemoryStorage

_ITSELF = User("system:apiserver", groups=("system:masters",))
_TOKEN = "of-the-server-itself"  # noqa: S105 - for a server that nobody else reaches


def main(arguments: list[str]) -> int:
    """Writes the objects, or checks that they are there as the server would make them now."""
    content = asyncio.run(made())
    if "--check" not in arguments:
        FRESH.parent.mkdir(exist_ok=True)
        FRESH.write_bytes(content)
    elif not FRESH.exists() or FRESH.read_bytes() != content:
        print(f"{FRESH.name} is not what the server makes; run `python -m fresh_cluster`", file=sys.stderr)
        return 1
    return 0


async def made() -> bytes:
    """The objects as lines of JSON, each with its key."""
    clock, storage = ManualClock(TEMPLATE_TIME), MemoryStorage()
    rng = random.Random(0)  # noqa: S311 - what it makes is replaced
    key, audit = SigningKey.generate(), AuditLog(clock, capacity=1)
    server = AssembledServer(
        ServerDeps(
            storage=storage,
            clock=clock,
            rng=rng,
            key=key,
            audit=audit,
            tokens={_TOKEN: _ITSELF},
            supervisor=Supervisor(clock),
        )
    )
    catalog = Catalog(builtin_types(clock))
    for each in bootstrap_objects():
        await _create(server, catalog, each)
    found = (await storage.page("/registry/")).items
    lines = [{"key": item.key, "value": msgspec.Raw(_with_steady_uid(item))} for item in found]
    return msgspec.json.Encoder().encode_lines(lines)


def _with_steady_uid(item: Stored) -> bytes:
    """With one that is the same however many the server makes up before it."""
    uid: str = msgspec.json.decode(item.value)["metadata"]["uid"]
    return item.value.replace(uid.encode(), str(uuid.uuid5(uuid.NAMESPACE_URL, item.key)).encode())


async def _create(made: AssembledServer, catalog: Catalog, value: Json) -> None:
    resource = catalog.of_kind(value["apiVersion"], value["kind"])
    assert resource is not None, value["kind"]
    root = f"/apis/{resource.api_version}" if resource.group else f"/api/{resource.api_version}"
    namespace = value["metadata"].get("namespace", "")
    path = f"{root}/namespaces/{namespace}/{resource.plural}" if namespace else f"{root}/{resource.plural}"
    headers = {
        "authorization": f"Bearer {_TOKEN}",
        "content-type": "application/json",
        "user-agent": "kube-apiserver",
    }
    reply = await made.server.handle(
        ApiRequest(method="POST", path=path, headers=headers, body=msgspec.json.encode(value))
    )
    assert reply.status == 201, reply.body.decode()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
