"""What a fresh control plane has."""

import random

import msgspec

import fresh_cluster
from navarch._base.clock import ManualClock
from navarch.api import format_time
from navarch.cluster.embedded.bootstrap import FRESH, bootstrap_storage
from navarch.cluster.storage.memory import MemoryStorage


async def test_kept_control_plane_is_what_the_server_makes() -> None:
    """`python -m fresh_cluster` writes it anew when the server makes something else of it."""
    assert await fresh_cluster.made() == FRESH.read_bytes()


async def test_every_cluster_has_uids_and_times_of_its_own() -> None:
    """Nothing of the one that was kept is left."""
    clock, stores = ManualClock(), (MemoryStorage(), MemoryStorage())
    for seed, store in enumerate(stores):
        await bootstrap_storage(store, clock, random.Random(seed))
    first, second = [[msgspec.json.decode(item.value) for item in (await each.page("/")).items] for each in stores]
    uids = [each["metadata"]["uid"] for each in (*first, *second)]
    assert len(set(uids)) == len(uids) > 0
    assert {each["metadata"]["creationTimestamp"] for each in first} == {format_time(clock.now())}


async def test_store_that_is_in_use_is_left_alone() -> None:
    """Whatever was changed in it stays so."""
    store = MemoryStorage()
    await store.put("/registry/namespaces/mine", b'{"metadata":{"uid":"1"}}', expected=0)
    await bootstrap_storage(store, ManualClock(), random.Random(0))
    assert [item.key for item in (await store.page("/")).items] == ["/registry/namespaces/mine"]
