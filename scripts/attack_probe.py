"""`python -m attack_probe`: runs the attacks of tests/security beside another client, and prints what that client waited.

Attacks on a cluster over HTTPS: a process of its own sends a small request all the time; its slowest answer counts.
Attacks on a server in the test's process: the longest time for which its event loop served nobody else counts.
Run it alone on the machine: whatever else runs is measured, too. The second figure of a line hardly depends on that: the
processor time of the longest slice for which the event loop served nobody else (`security.loop_slices`).
It is also the pytest plugin that does so (`-p attack_probe`).
"""

from __future__ import annotations

import asyncio
import http.client
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

ATTACKS = (
    "test_request_budget.py",
    "test_hostile_requests.py",
    "test_cel_cost.py",
    "test_pattern_costs.py",
    "test_derived_costs.py",
    "test_derived_schema_costs.py",
    "test_derived_controller_costs.py",
)
_PATH = "/api/v1/namespaces/default/configmaps/none"
_PAUSE = 0.01
_FRESH_AFTER = 20
"""Requests on one connection; the next client begins with a handshake."""
_TIMEOUT = 60.0
_PROMISED = 1.0


class Slowest:
    """The slowest answer during each test, and the longest slice of the event loop, in seconds."""

    def __init__(self) -> None:
        self.by_test: dict[str, float] = {}
        self.slices_by_test: dict[str, float] = {}
        self.gaps: list[float] = []
        self.slices: list[Callable[[], float]] = []
        """Tell the longest slice of each running cluster since they were asked last."""
        self.is_measuring = False
        self.own: list[float] = []
        """The longest slices of loops in this process that have ended."""
        self._spans: list[tuple[str, float, float]] = []
        self._files: list[Path] = []

    @contextmanager
    def during(self, test: str) -> Iterator[None]:
        """Counts the gaps of event loops and, later, the answers in this time."""
        for take in self.slices:
            take()
        self.gaps, self.own, begin = [], [], time.monotonic()
        self.is_measuring = True
        try:
            yield
        finally:
            self.is_measuring = False
            self.slices_by_test[test] = max([*self.own, *(take() for take in self.slices)], default=0.0)
            self._spans.append((test, begin, time.monotonic()))
            if self.gaps:
                self.by_test[test] = max(self.gaps)

    @contextmanager
    def beside(self, cluster: Any) -> Iterator[None]:
        """Another client asks the server all the time."""
        config = cluster.config
        with tempfile.NamedTemporaryFile(delete=False) as file, tempfile.NamedTemporaryFile() as authority:
            authority.write(config.ca_data)
            authority.flush()
            self._files.append(Path(file.name))
            command = [sys.executable, __file__, config.server, authority.name, config.token]
            with subprocess.Popen(command, stdout=file) as client:
                self.slices.append(cluster.longest_slice)
                try:
                    yield
                finally:
                    self.slices.remove(cluster.longest_slice)
                    client.terminate()

    def add_answers(self) -> None:
        """Assigns the answers of the other clients to the tests during which they were awaited."""
        for path in self._files:
            answers = [tuple(map(float, line.split())) for line in path.read_text().splitlines() if " " in line]
            path.unlink()
            for test, begin, end in self._spans:
                waited = [seconds for at, seconds in answers if at + seconds >= begin and at <= end]
                if waited:
                    self.by_test[test] = max(waited)


def _ask_forever(server: str, authority: str, token: str) -> None:
    """Prints when each request was sent, and how long its answer took."""
    host = urlsplit(server).netloc
    context = ssl.create_default_context(cafile=authority)
    while True:
        connection = None
        for _ in range(_FRESH_AFTER):
            at = time.monotonic()
            connection = connection or http.client.HTTPSConnection(host, context=context, timeout=_TIMEOUT)
            try:
                connection.request("GET", _PATH, headers={"Authorization": f"Bearer {token}"})
                connection.getresponse().read()
            except OSError:
                return
            print(at, time.monotonic() - at, flush=True)
            time.sleep(_PAUSE)
        if connection is not None:
            connection.close()


_slowest = Slowest()


def _watch_loops() -> None:
    """Each `Runner.run` of a test measures how long its loop served nobody; those of fixtures look for tasks that are left."""
    plain = asyncio.Runner.run

    def run(self: asyncio.Runner, coro: Coroutine[Any, Any, Any], **options: Any) -> Any:
        return plain(self, _with_gaps(coro) if _slowest.is_measuring else coro, **options)

    asyncio.Runner.run = run  # type: ignore[method-assign] # measured from outside


async def _with_gaps(coro: Coroutine[Any, Any, Any]) -> Any:
    from security.loop_slices import measured_slices  # noqa: PLC0415 - with pytest's path

    async with measured_slices() as slices:
        _slowest.slices.append(slices.take)
        try:
            return await _watched(coro)
        finally:
            _slowest.slices.remove(slices.take)
            _slowest.own.append(slices.take())


async def _watched(coro: Coroutine[Any, Any, Any]) -> Any:
    last = time.monotonic()

    async def tick() -> None:
        nonlocal last
        while True:
            now = time.monotonic()
            _slowest.gaps.append(now - last)
            last = now
            await asyncio.sleep(_PAUSE / 10)

    ticking = asyncio.ensure_future(tick())
    await asyncio.sleep(0)
    try:
        return await coro
    finally:
        _slowest.gaps.append(time.monotonic() - last)
        ticking.cancel()
        await asyncio.wait([ticking])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Measures during the test alone, not during its fixtures."""
    with _slowest.during(item.nodeid):
        return (yield)


def pytest_configure() -> None:
    """Puts another client beside each attacked cluster, and measures loops."""
    from security import attacked_cluster as module  # noqa: PLC0415 - with pytest's path

    plain = module.attacked_cluster

    @contextmanager
    def measured(*, simulated: int = 0) -> Iterator[Any]:
        with plain(simulated=simulated) as cluster, _slowest.beside(cluster):
            yield cluster

    module.attacked_cluster = measured
    _watch_loops()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Prints the slowest answer of each file, each test that broke the promise, and how many were measured."""
    _slowest.add_answers()
    found = sorted(_slowest.by_test.items(), key=lambda each: -each[1])
    shown: dict[str, int] = {}
    for test, seconds in found:
        name = test.removeprefix("tests/security/")
        file = name.partition("::")[0]
        shown[file] = shown.get(file, 0) + 1
        if shown[file] <= 3 or seconds > _PROMISED:
            terminalreporter.write_line(f"{seconds:8.3f} s {_slowest.slices_by_test[test]:8.3f} s  {name}")
    late = sum(seconds > _PROMISED for _, seconds in found)
    terminalreporter.write_line(
        f"{len(found)} attacks measured; another client waited longer than {_PROMISED} s in {late};"
        f" the longest slice took {max(_slowest.slices_by_test.values(), default=0.0):.3f} s of processor time"
    )


if __name__ == "__main__":
    if sys.argv[1:]:
        _ask_forever(*sys.argv[1:])
    paths = [str(Path(__file__).parent.parent / "tests" / "security" / name) for name in ATTACKS]
    # In a process of its own: pytest warns of modules of this one that it would have to rewrite.
    sys.exit(subprocess.call([sys.executable, "-m", "pytest", "-q", "-p", "attack_probe", "--numprocesses=0", *paths]))
