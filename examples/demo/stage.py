"""A story told step by step: as a live picture in a terminal, as lines anywhere else."""

from __future__ import annotations

import asyncio
import logging
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from navarch.cluster.embedded.components import ComponentOptions
from navarch.errors import NavarchError
from navarch.testing import Cluster
from navarch.testing.cluster import over_https

__all__ = ["Scene", "Stage", "View", "perform", "scene", "stay_up"]

View = Callable[[], Awaitable[RenderableType]]
"""Looks at the cluster, and draws what is there now."""

_SECONDS_BETWEEN_LOOKS = 0.2


class Scene(NamedTuple):
    """Where a story takes place: a cluster, and a folder that goes with it."""

    cluster: Cluster
    folder: Path


@asynccontextmanager
async def scene(*, nodes: int, look: str, hints: Sequence[str]) -> AsyncIterator[Scene]:
    """A cluster of this machine while the block lasts; at its end the `hints` say what can be typed to go on by hand.

    `look` is the command that shows meanwhile what is there.
    """
    console = Console(highlight=False)
    with tempfile.TemporaryDirectory(prefix="navarch-demo-") as folder:
        async with over_https(ComponentOptions(nodes=nodes)) as cluster:
            assert cluster.access is not None
            kubeconfig = Path(folder, "kubeconfig")
            kubeconfig.write_bytes(cluster.access.kubeconfig_file())
            console.print(f"To look at it meanwhile: [bold]KUBECONFIG={kubeconfig} {look}[/]\n", soft_wrap=True)
            yield Scene(cluster, Path(folder))
    console.print("\nTo go on by hand:")
    for line in hints:
        console.print(f"  [bold]{line}[/]", soft_wrap=True)


async def stay_up() -> None:
    """Whatever runs goes on until somebody ends it."""
    Console(highlight=False).print("\nEverything stays up until you press Ctrl-C.")
    await asyncio.Event().wait()


@dataclass(slots=True)
class _Step:
    title: str
    began: float
    took: float | None = None
    note: str = ""
    failed: bool = False


class Stage:
    """Shows the steps of a story, and beside them what `look` draws, which is called again and again meanwhile."""

    def __init__(self, title: str, look: View, *, console: Console | None = None) -> None:
        self._title = title
        self._look = look
        self._console = console or Console(highlight=False)
        self._steps: list[_Step] = []
        self._picture: RenderableType = Text("")

    @asynccontextmanager
    async def shown(self) -> AsyncIterator[None]:
        """The picture is there while the block lasts; its last state stays on the screen."""
        if not self._console.is_terminal:
            self._console.print(self._title)
            yield
            return
        with Live(get_renderable=self._draw, console=self._console, refresh_per_second=10):
            async with asyncio.TaskGroup() as group:
                looking = group.create_task(self._keep_looking())
                try:
                    yield
                finally:
                    looking.cancel()
            self._picture = await self._look()

    @contextmanager
    def step(self, title: str) -> Iterator[_Step]:
        """One step of the story, and how long it took; give it a `note` where something is worth saying."""
        step = _Step(title, time.monotonic())
        self._steps.append(step)
        try:
            yield step
        except BaseException:
            step.failed, step.note = True, "this was not reached"
            raise
        finally:
            step.took = time.monotonic() - step.began
            if not self._console.is_terminal:
                self._console.print(
                    f"{step.took:6.2f} s  {step.title}{f': {step.note}' if step.note else ''}", soft_wrap=True
                )

    def measured(self) -> Sequence[tuple[str, float]]:
        """Every step that came true, with its seconds."""
        return [(step.title, step.took) for step in self._steps if step.took is not None and not step.failed]

    async def _keep_looking(self) -> None:
        while True:
            self._picture = await self._look()
            await asyncio.sleep(_SECONDS_BETWEEN_LOOKS)

    def _draw(self) -> RenderableType:
        return Panel(Group(self._story(), Text(), self._picture), title=self._title, padding=(1, 2))

    def _story(self) -> Table:
        table = Table.grid(padding=(0, 1))
        for step in self._steps:
            seconds = time.monotonic() - step.began if step.took is None else step.took
            table.add_row(_mark(step), f"{seconds:6.2f} s", step.title, Text(step.note, style="dim"))
        return table


def _mark(step: _Step) -> RenderableType:
    if step.failed:
        return Text("✗", style="red")
    return Text("✓", style="green") if step.took is not None else Spinner("dots")


def perform(story: Coroutine[Any, Any, None]) -> int:
    """Runs a story as a whole program. What it could not reach is said in sentences; returns the exit code.

    Warnings of what runs in it are left out: they would tear the picture.
    """
    logging.getLogger().setLevel(logging.ERROR)
    try:
        asyncio.run(story)
    except KeyboardInterrupt:
        return 130
    except (AssertionError, NavarchError, BaseExceptionGroup) as failure:
        for leaf in _foreseen(failure):
            print(f"the demo could not go on: {leaf}", file=sys.stderr)  # noqa: T201 - it is a program
        return 1
    return 0


def _foreseen(failure: BaseException) -> list[BaseException]:
    """The single failures; what nobody has foreseen is raised, with its traceback."""
    if not isinstance(failure, BaseExceptionGroup):
        return [failure]
    _, other = failure.split((AssertionError, NavarchError))
    if other is not None:
        raise other
    return [leaf for part in failure.exceptions for leaf in _foreseen(part)]
