"""`python -m watch_walk` prints the files that one watch event passes, from the answer of the API server to the reconciler.

It runs an operator on an embedded cluster over HTTPS, changes an object, and records every module of `ROOMS` that the watch
of its kind and the worker of its controller run through. Rooms below (`_base`, `api`, `observe`) serve all others and are
not counted.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from types import FrameType
from typing import Annotated

import navarch
from navarch import Context, Meta, Operator, Resource, Spec, Status
from navarch.client import MergePatch
from navarch.k8s.core.v1 import ConfigMap
from navarch.queue import WorkQueue
from navarch.testing.cluster import over_https

ROOMS = ("client", "cache", "queue", "controller")
_SOURCE = str(Path(navarch.__file__).parent) + "/"
_SIZES = 3
"""The first may come by the list, the second comes by the watch, and the third is traced."""
_WATCH, _WORKER = "watch of widgets", "walk: worker"


class WidgetSpec(Spec):
    """The spec of a widget."""

    size: Annotated[int, Meta(ge=0)] = 0


class Widget(Resource[WidgetSpec, Status], group="walk.example.com", version="v1"):
    """What is changed."""


async def walked_files() -> list[str]:
    """Returns the files in the order in which the event came to them, relative to the package."""
    watch_files: dict[str, None] = {}
    worker_files: dict[str, None] = {}
    operator, seen = Operator("walk", election=False), [asyncio.Event() for _ in range(_SIZES)]

    @operator.controller(Widget, owns=(ConfigMap,), name="walk")
    async def reconcile(widget: Widget, _ctx: Context) -> None:
        if widget.spec.size == _SIZES - 1:
            sys.setprofile(None)
        seen[widget.spec.size].set()

    def record(frame: FrameType, event: str, _argument: object) -> None:
        path = frame.f_code.co_filename
        if event == "call" and path.startswith(_SOURCE):
            name, task = path[len(_SOURCE) :], asyncio.current_task()
            runner = task.get_name() if task is not None else ""
            if runner.startswith(_WORKER) and frame.f_code is WorkQueue.get.__code__:
                worker_files.clear()  # what came before belongs to an earlier reconcile
            if name.partition("/")[0] in ROOMS and runner.startswith((_WATCH, _WORKER)):
                (watch_files if runner.startswith(_WATCH) else worker_files)[name] = None

    async with over_https() as cluster, cluster.run(operator):
        await cluster.create(Widget(name="one"))
        async with asyncio.timeout(60):
            for size in range(_SIZES - 1):
                await seen[size].wait()
                if size + 1 == _SIZES - 1:
                    sys.setprofile(record)
                patch = MergePatch({"spec": {"size": size + 1}})
                await cluster.client.patch(Widget, "one", patch, namespace="default")
            await seen[-1].wait()
    return list(watch_files | worker_files)


def main() -> None:
    """Prints the files and their number."""
    files = asyncio.run(walked_files())
    print(*files, len(files), sep="\n")


if __name__ == "__main__":
    main()
