"""An operator as a whole program: its event loop, its signals, its exit code."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import sys
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from navarch.client import Client, Config, connect
from navarch.errors import DefinitionError, NavarchError
from navarch.observe import logs
from navarch.operator.declarations import DeclaredOperator
from navarch.operator.process import serve

__all__ = ["run", "run_until_signal"]

Serving = Callable[[Client], Awaitable[None]]
_SIGNALS = (signal.SIGTERM, signal.SIGINT)

_log = logs.logger("navarch.operator")


def run(*operators: DeclaredOperator) -> None:
    """Runs the operators until SIGTERM or SIGINT; a second signal ends at once.

    An operator that cannot start logs the cause in one sentence and exits with 1. Logging is set up unless it already is.
    """
    _refuse_running_loop()
    if not logging.getLogger().handlers:
        logs.setup()
    names = ", ".join(operator.name for operator in operators)
    if not run_until_signal(names, lambda client: serve(client, *operators)):
        sys.exit(1)


def run_until_signal(
    names: str, serving: Serving, config: Config | None = None, signals: tuple[signal.Signals, ...] = _SIGNALS
) -> bool:
    """Runs `serving` with a client, in an event loop of its own, until one of the signals; returns False if it cannot run.

    `names` are those of its operators, for the log. Without `config` the cluster is the one that kubectl would talk to.
    """
    gc.freeze()  # what was imported stays: the garbage collector need not look at it again and again
    return _runner()(_until_signal(names, serving, config, signals))


def _refuse_running_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise DefinitionError(
        "operator.run() is the whole program, and an event loop runs already; await operator.serve(client) inside of it"
    )


async def _until_signal(
    names: str, serving: Serving, config: Config | None, signals: tuple[signal.Signals, ...]
) -> bool:
    """Runs until a signal; returns whether all went well."""
    task = asyncio.current_task()
    assert task is not None
    loop = asyncio.get_running_loop()
    for number in signals:
        loop.add_signal_handler(number, task.cancel)
    try:
        async with connect(config) as client:
            _log.info("starting", operators=names, cluster=client.origin)
            await serving(client)
    except asyncio.CancelledError:
        _log.info("stopped", operators=names)
        return True
    except BaseExceptionGroup as group:
        _report(group)
    except NavarchError as error:
        _log.error("cannot run", why=str(error))
    return False


def _report(group: BaseExceptionGroup[BaseException]) -> None:
    """Logs the cause of each foreseen failure; raises the others with their tracebacks."""
    foreseen, other = group.split(NavarchError)
    if other is not None:
        raise other
    for error in _leaves(foreseen):
        _log.error("cannot run", why=str(error))


def _leaves(group: BaseExceptionGroup[Any] | None) -> list[BaseException]:
    if group is None:
        return []
    return [
        leaf
        for error in group.exceptions
        for leaf in (_leaves(error) if isinstance(error, BaseExceptionGroup) else [error])
    ]


def _runner() -> Callable[[Coroutine[Any, Any, bool]], bool]:
    """Returns uvloop's runner where it is installed, else asyncio's."""
    try:
        import uvloop  # noqa: PLC0415 - an extra
    except ImportError:
        return asyncio.run
    return uvloop.run
