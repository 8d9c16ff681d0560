"""Keys and values: reading, writing, transactions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import msgspec

from navarch.errors import EtcdCompactedError
from navarch.etcd.gateway import Gateway
from navarch.etcd.messages import (
    Compare,
    DeleteRequest,
    DeleteResponse,
    Header,
    KeyValue,
    PutRequest,
    PutResponse,
    RangeRequest,
    RangeResponse,
    TxnResponse,
    prefix_end,
)
from navarch.etcd.methods import Method

Operation = RangeRequest | PutRequest | DeleteRequest


class _Compacted(msgspec.Struct):
    header: Header = Header()


_RANGE = Method("/v3/kv/range", RangeResponse, repeatable=True)
_PUT = Method("/v3/kv/put", PutResponse, repeatable=False)
_DELETE = Method("/v3/kv/deleterange", DeleteResponse, repeatable=False)
_TXN = Method("/v3/kv/txn", TxnResponse, repeatable=False)
_READING_TXN = Method("/v3/kv/txn", TxnResponse, repeatable=True)
_COMPACT = Method("/v3/kv/compaction", _Compacted, repeatable=True, seconds=60.0)


class Kv:
    """Reads and writes keys. Raises `EtcdError`; a write is never retried."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def get(self, key: bytes, *, revision: int = 0) -> KeyValue | None:
        """Returns the key, now or at that revision."""
        answer = await self.range(RangeRequest(key=key, revision=revision))
        return answer.kvs[0] if answer.kvs else None

    async def range(self, request: RangeRequest) -> RangeResponse:
        """Returns the keys of a range. Raises `EtcdCompactedError` if its revision is compacted."""
        return await self._gateway.call(_RANGE, request)

    async def pages(self, prefix: bytes, *, size: int, revision: int = 0) -> AsyncIterator[list[KeyValue]]:
        """Yields all keys with a prefix in order, page by page, at one revision; 0 means that of the first page."""
        request = RangeRequest(key=prefix or b"\0", range_end=prefix_end(prefix), limit=size, revision=revision)
        while True:
            page = await self.range(request)
            if page.kvs:
                yield page.kvs
            if not page.more:
                return
            next_key = page.kvs[-1].key + b"\0"
            request = msgspec.structs.replace(request, key=next_key, revision=revision or page.header.revision)
            revision = request.revision

    async def put(self, key: bytes, value: bytes, *, lease: int = 0, prev_kv: bool = False) -> PutResponse:
        """Writes a key."""
        return await self._gateway.call(_PUT, PutRequest(key=key, value=value, lease=lease, prev_kv=prev_kv))

    async def delete(self, key: bytes, *, range_end: bytes = b"", prev_kv: bool = False) -> DeleteResponse:
        """Deletes a key, or all keys up to `range_end`."""
        return await self._gateway.call(_DELETE, DeleteRequest(key=key, range_end=range_end, prev_kv=prev_kv))

    async def txn(
        self, compare: Sequence[Compare], success: Sequence[Operation], failure: Sequence[Operation] = ()
    ) -> TxnResponse:
        """Executes `success` if all conditions hold, otherwise `failure`, atomically and with one revision."""
        reads_only = all(isinstance(operation, RangeRequest) for operation in (*success, *failure))
        return await self._gateway.call(
            _READING_TXN if reads_only else _TXN,
            {
                "compare": compare,
                "success": [_wrapped(operation) for operation in success],
                "failure": [_wrapped(operation) for operation in failure],
            },
        )

    async def compact(self, revision: int, *, physical: bool = False) -> None:
        """Compacts the history before that revision; `physical` waits until the space can be reused.

        A revision that is already compacted is no error.
        """
        try:
            await self._gateway.call(_COMPACT, {"revision": revision, "physical": physical})
        except EtcdCompactedError:
            return


def _wrapped(operation: Operation) -> dict[str, Operation]:
    match operation:
        case RangeRequest():
            return {"request_range": operation}
        case PutRequest():
            return {"request_put": operation}
        case DeleteRequest():
            return {"request_delete_range": operation}
