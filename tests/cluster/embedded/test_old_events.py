"""Events are forgotten after an hour."""

from __future__ import annotations

from navarch._base.clock import ManualClock
from navarch._base.tasks import TaskSet
from navarch.cluster.server.kinds.builtin.core.events import EventExpiry
from navarch.cluster.storage import Storage
from navarch.cluster.storage.memory import MemoryStorage

MINUTE = 60.0
EVENTS = "/registry/events/"


async def _keys(storage: Storage) -> list[str]:
    return [item.key for item in (await storage.page("/registry/")).items]


async def test_event_to_which_nothing_is_added_goes_after_an_hour() -> None:
    """One that happens again has another hour; nothing else goes."""
    clock, storage, beside = ManualClock(), MemoryStorage(), TaskSet()
    beside.start(EventExpiry(storage, clock).run(), "old events")
    revision = await storage.put(f"{EVENTS}default/again", b"{}", expected=0)
    for key in (f"{EVENTS}default/silent", "/registry/pods/default/web"):
        await storage.put(key, b"{}", expected=0)
    await clock.advance(30 * MINUTE)
    await storage.put(f"{EVENTS}default/again", b"{ }", expected=revision)
    await clock.advance(30 * MINUTE)
    assert len(await _keys(storage)) == 3
    await clock.advance(2 * MINUTE)
    assert await _keys(storage) == [f"{EVENTS}default/again", "/registry/pods/default/web"]
    await clock.advance(60 * MINUTE)
    assert await _keys(storage) == ["/registry/pods/default/web"]
    await beside.stop()
