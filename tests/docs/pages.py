"""Pages of docs/ as modules, and their controllers at work on a model server."""

from __future__ import annotations

import asyncio
import importlib.util
import re
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from chaos.waiting import until
from model_server import ModelServer
from navarch._base.clock import ManualClock
from navarch.api import Key
from navarch.client import Client
from navarch.controller import Context, Declared
from navarch.k8s.core.v1 import ConfigMap, Namespace, Pod, Secret
from navarch.k8s.events.v1 import Event
from navarch.operator import Background, Operator

DOCS = Path(__file__).parents[2] / "docs"
SERVED = (ConfigMap, Pod, Secret, Namespace, Event)


def blocks(page: str, language: str) -> list[str]:
    """The code blocks of one language, in the page's order."""
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)


def module_of(page: str, folder: Path) -> ModuleType:
    """The page's Python, from top to bottom, as a module that has a file: descriptions of fields are read from it."""
    file = folder / f"page_{page.removesuffix('.md')}.py"
    file.write_text("\n".join(blocks(page, "python")))
    return module_from(file)


def module_from(file: Path) -> ModuleType:
    """The file as a module that others can import by its name."""
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[file.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Trial:
    """One controller of a page at work on a model server, by a clock that stands still until it is moved."""

    def __init__(
        self, declared: Declared[Any, Any], backgrounds: Sequence[Background] = (), *, namespaces: tuple[str, ...] = ()
    ) -> None:
        self.clock = ManualClock()
        self.server = ModelServer(declared.primary, *SERVED, clock=self.clock)
        self.client: Client = self.server.client()
        self.reconciled: list[tuple[Key, tuple[str, ...]]] = []
        """What was reconciled, and why."""
        self._declared = declared
        self._operator = Operator(
            "websites", namespaces=namespaces, crds="ignore", election=False, check_permissions=False
        )
        self.namespaces = self._operator.namespaces
        self._operator.controllers.append(declared)
        self._operator.backgrounds.extend(backgrounds)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """The controller runs until the end of the block."""
        inner: Any = self._declared.reconcile
        self._declared.reconcile = self._noting(inner)
        try:
            async with asyncio.TaskGroup() as group:
                task = group.create_task(self._operator.serve(self.client))
                try:
                    yield
                finally:
                    await self._stop(task)
        finally:
            self._declared.reconcile = inner

    async def _stop(self, task: asyncio.Task[None]) -> None:
        """What is under way has its time to end, which goes by here."""
        task.cancel()
        for _ in range(60):
            if not task.done():
                await self.clock.advance(1)

    def _noting(self, inner: Any) -> Any:
        if not asyncio.iscoroutinefunction(inner):

            def plain(primary: Any, ctx: Context) -> Any:
                self.reconciled.append((ctx.key, ctx.reasons))
                return inner(primary, ctx)

            return plain

        async def noting(primary: Any, ctx: Context) -> Any:
            self.reconciled.append((ctx.key, ctx.reasons))
            return await inner(primary, ctx)

        return noting

    async def until_reconciled(self, count: int) -> None:
        """So often since the beginning, and everything has come to rest."""
        await until(lambda: len(self.reconciled) >= count, f"{count} reconciles, got {self.reconciled}", seconds=60)
        await self.clock.settle()
        assert len(self.reconciled) == count, f"expected {count} reconciles, got {self.reconciled}"

    async def until(self, condition: Callable[[], bool], what: str) -> None:
        await until(condition, what, seconds=60)
        await self.clock.settle()

    def object(self, kind: Any, name: str, namespace: str = "default") -> dict[str, Any]:
        """As the server has it; empty if it has none."""
        return cast("dict[str, Any]", self.server.objects(kind).get(Key(namespace, name)) or {})

    def names(self, kind: Any) -> list[str]:
        """Of everything that there is of that kind."""
        return sorted(key.name for key in self.server.objects(kind))

    def events(self) -> list[tuple[str, str]]:
        """Type and reason of those that were recorded."""
        return sorted((event["type"], event["reason"]) for event in self.server.objects(Event).values())
