"""Pods that fail again and again on a node: each is replaced later than the one before."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

_FIRST = timedelta(seconds=1)
_LONGEST = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class _Delay:
    length: timedelta
    until: datetime

    @property
    def forgotten_at(self) -> datetime:
        return self.until + self.length


class FailureDelays:
    """Remembers failures by DaemonSet and node; one that has not failed for long begins anew."""

    def __init__(self) -> None:
        self._delays: dict[tuple[str, str], _Delay] = {}

    def may_replace(self, uid: str, node: str, now: datetime) -> bool:
        """Whether a pod that failed may be replaced now; if so, the next one has to wait for longer."""
        known = self._delays.get((uid, node))
        if known is not None and now < known.until:
            return False
        self._delays = {key: delay for key, delay in self._delays.items() if now < delay.forgotten_at}
        length = _FIRST if (uid, node) not in self._delays or known is None else min(known.length * 2, _LONGEST)
        self._delays[uid, node] = _Delay(length, now + length)
        return True

    def seconds_left(self, uid: str, now: datetime) -> float | None:
        """When the next pod of the DaemonSet may be replaced; None if none has to wait."""
        waiting = [delay.until for (whose, _), delay in self._delays.items() if whose == uid and delay.until > now]
        return (min(waiting) - now).total_seconds() if waiting else None
