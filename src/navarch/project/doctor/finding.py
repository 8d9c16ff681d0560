"""`Finding`: the result of one check."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Literal

__all__ = ["Finding", "Health", "time_limit"]

Health = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check. `fix` is a command, or what to do in a few words; empty if nothing is to be done."""

    check: str
    state: Health
    detail: str
    fix: str = ""


@contextmanager
def time_limit(seconds: float, what: str) -> Iterator[None]:
    """Raises TimeoutError inside the block once it has taken so long, even if the code of others waits there.

    It needs signals: in other threads than the main one there is no limit.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def expire(_number: int, _frame: FrameType | None) -> None:
        raise TimeoutError(f"{what} did not end within {seconds:g} s")

    before = signal.signal(signal.SIGALRM, expire)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
