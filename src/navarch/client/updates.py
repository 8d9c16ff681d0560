"""Read, change, write back: until nobody was faster."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TypeVar

from navarch._base.backoff import Backoff, Delays
from navarch.api import Dynamic, Object
from navarch.client.reads import Reads
from navarch.client.target import Readable
from navarch.client.writes import Writes
from navarch.errors import Conflict, InvalidValueError

__all__ = ["Updates"]

W = TypeVar("W", bound=Object | Dynamic)

_PAUSE = Backoff(initial=0.01, maximum=1.0, jitter=1.0)


class Updates(Reads, Writes):
    """Changes that depend on what is there."""

    async def update(
        self,
        what: Readable[W],
        name: str,
        change: Callable[[W], object],
        *,
        namespace: str | None = None,
        subresource: str | None = None,
    ) -> W:
        """Reads the object, lets `change` change it and writes it back; after a `Conflict`, once more from the start.

        `change` is a plain function; it may run several times, each time on the object as it is then. Raises the last `Conflict` when the
        client's time limit has passed.
        """
        clock, delays = self._caller.clock, Delays(_PAUSE, self._caller.rng)
        limit = clock.monotonic() + self.options.timeout
        while True:
            found = await self.get(what, name, namespace=namespace)
            _refuse_coroutine(change(found))
            try:
                return await self.replace(found, namespace=namespace, subresource=subresource)
            except Conflict:
                if clock.monotonic() >= limit:
                    raise
            await clock.sleep(delays.next_delay())


def _refuse_coroutine(result: object) -> None:
    """A function that has only been begun has changed nothing, and the object would be written as it was read."""
    if isinstance(result, Coroutine):
        result.close()
        raise InvalidValueError("expected change as a plain function, got a coroutine; write def, or a lambda")
