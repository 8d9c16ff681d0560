"""Keys and values on a real etcd."""

from __future__ import annotations

import pytest

from navarch.errors import EtcdCompactedError, EtcdExhaustedError, EtcdRefusedError
from navarch.etcd import (
    DeleteRequest,
    EtcdClient,
    PutRequest,
    RangeRequest,
    mod_revision_is,
    prefix_end,
    value_is,
    version_is,
)


async def test_a_value_is_read_back_with_its_revisions(etcd: EtcdClient, prefix: bytes) -> None:
    """Any bytes, in keys and in values."""
    key, value = prefix + b"\xff\x00", bytes(range(256))
    first = (await etcd.kv.put(key, b"old")).header.revision
    second = (await etcd.kv.put(key, value)).header.revision
    found = await etcd.kv.get(key)
    assert found is not None
    assert (found.key, found.value, found.version) == (key, value, 2)
    assert (found.create_revision, found.mod_revision) == (first, second)
    earlier = await etcd.kv.get(key, revision=first)
    assert earlier is not None
    assert earlier.value == b"old"
    assert await etcd.kv.get(prefix + b"nothing") is None


async def test_a_put_can_show_what_was_there(etcd: EtcdClient, prefix: bytes) -> None:
    """Only if asked."""
    await etcd.kv.put(prefix, b"1")
    assert (await etcd.kv.put(prefix, b"2")).prev_kv is None
    previous = (await etcd.kv.put(prefix, b"3", prev_kv=True)).prev_kv
    assert previous is not None
    assert previous.value == b"2"


async def test_a_range_can_be_counted_sorted_and_limited(etcd: EtcdClient, prefix: bytes) -> None:
    """As etcd does it: the count is that of the whole range."""
    for name in (b"b", b"c", b"a"):
        await etcd.kv.put(prefix + name, name * 3)
    everything = RangeRequest(key=prefix, range_end=prefix_end(prefix))
    answer = await etcd.kv.range(everything)
    assert [kv.key for kv in answer.kvs] == [prefix + b"a", prefix + b"b", prefix + b"c"]
    counted = await etcd.kv.range(RangeRequest(key=prefix, range_end=prefix_end(prefix), count_only=True))
    assert (counted.kvs, counted.count) == ([], 3)
    newest = await etcd.kv.range(
        RangeRequest(
            key=prefix, range_end=prefix_end(prefix), sort_order="DESCEND", sort_target="MOD", limit=1, keys_only=True
        )
    )
    assert [(kv.key, kv.value) for kv in newest.kvs] == [(prefix + b"a", b"")]
    assert (newest.more, newest.count) == (True, 3)


async def test_pages_are_of_one_revision(etcd: EtcdClient, prefix: bytes) -> None:
    """What is written between two pages does not show."""
    for number in range(5):
        await etcd.kv.put(prefix + b"%d" % number, b"")
    pages = []
    async for page in etcd.kv.pages(prefix, size=2):
        await etcd.kv.put(prefix + b"4", b"new")
        await etcd.kv.put(prefix + b"5", b"new")
        pages.append([(kv.key[-1:], kv.value) for kv in page])
    assert pages == [[(b"0", b""), (b"1", b"")], [(b"2", b""), (b"3", b"")], [(b"4", b"")]]


async def test_a_range_is_deleted_as_one(etcd: EtcdClient, prefix: bytes) -> None:
    """And can show what was there."""
    await etcd.kv.put(prefix + b"a", b"1")
    await etcd.kv.put(prefix + b"b", b"2")
    answer = await etcd.kv.delete(prefix, range_end=prefix_end(prefix), prev_kv=True)
    assert (answer.deleted, [kv.value for kv in answer.prev_kvs]) == (2, [b"1", b"2"])
    assert (await etcd.kv.delete(prefix, range_end=prefix_end(prefix))).deleted == 0


async def test_a_transaction_does_one_thing_or_the_other(etcd: EtcdClient, prefix: bytes) -> None:
    """Conditions on revision, version and value; all operations have one revision."""
    a, b = prefix + b"a", prefix + b"b"
    created = await etcd.kv.txn(
        [mod_revision_is(a, 0)], [PutRequest(key=a, value=b"1"), PutRequest(key=b, value=b"1")], [RangeRequest(key=a)]
    )
    assert created.succeeded
    again = await etcd.kv.txn([mod_revision_is(a, 0)], [PutRequest(key=a, value=b"2")], [RangeRequest(key=a)])
    assert not again.succeeded
    shown = again.responses[0].response_range
    assert shown is not None
    assert [(kv.value, kv.mod_revision) for kv in shown.kvs] == [(b"1", created.header.revision)]
    both = await etcd.kv.txn([version_is(a, 1), value_is(b, b"1")], [DeleteRequest(key=a)])
    assert both.succeeded
    deleted = both.responses[0].response_delete_range
    assert deleted is not None
    assert deleted.deleted == 1
    assert not (await etcd.kv.txn([value_is(b, b"other")], [DeleteRequest(key=b)])).succeeded


async def test_forgotten_revisions_are_refused(etcd: EtcdClient, prefix: bytes) -> None:
    """Forgetting again is no error; a revision of the future is."""
    first = (await etcd.kv.put(prefix, b"1")).header.revision
    second = (await etcd.kv.put(prefix, b"2")).header.revision
    await etcd.kv.compact(second, physical=True)
    await etcd.kv.compact(first)
    with pytest.raises(EtcdCompactedError, match="compacted"):
        await etcd.kv.get(prefix, revision=first)
    with pytest.raises(EtcdRefusedError, match="future revision"):
        await etcd.kv.get(prefix, revision=second + 1000)
    with pytest.raises(EtcdRefusedError, match="future revision"):
        await etcd.kv.compact(second + 1000)


async def test_errors_carry_no_values(etcd: EtcdClient, prefix: bytes) -> None:
    """What is stored may be secret."""
    with pytest.raises(EtcdRefusedError) as refused:
        await etcd.kv.put(b"", b"the secret")
    assert "key is not provided" in str(refused.value)
    assert "secret" not in str(refused.value)
    with pytest.raises(EtcdExhaustedError) as too_large:
        await etcd.kv.put(prefix, b"the secret" * 300_000)
    assert "larger than max" in str(too_large.value)
    assert "secret" not in str(too_large.value)
