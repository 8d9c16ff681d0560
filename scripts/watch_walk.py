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
from navarch.testing.cluster import over_https

ROOMS = ("client", "cache", "queue", "controller")
_SOURCE = str(Path(navarch.__file__).parent) + "/"
_TURNS = 100
"""Of the event loop, after which the first reconcile has ended: it waits for nothing."""
_TASKS = ("watch of widgets", "walk: worker")


class WidgetSpec(Spec):
    """The spec of a widget."""

    size: Annotated[int, Meta(ge=0)] = 0


class Widget(Resource[WidgetSpec, Status], group="walk.example.com", version="v1"):
    """What is changed."""


async def walked_files() -> list[str]:
    """Returns the files in the order in which the event came to them, relative to the package."""
    files: dict[str, None] = {}
    operator, first, second = Operator("walk", election=False), asyncio.Event(), asyncio.Event()

    @operator.controller(Widget, owns=(ConfigMap,), name="walk")
    async def reconcile(widget: Widget, _ctx: Context) -> None:
        if widget.spec.size == 1:
            first.set()
        else:
            sys.setprofile(None)
            second.set()

    def record(frame: FrameType, event: str, _argument: object) -> None:
        path = frame.f_code.co_filename
        if event == "call" and path.startswith(_SOURCE):
            name = path[len(_SOURCE) :]
            task = asyncio.current_task()
            if name.partition("/")[0] in ROOMS and task is not None and task.get_name().startswith(_TASKS):
                files[name] = None

    async with over_https() as cluster, cluster.run(operator):
        await cluster.create(Widget(name="one", spec=WidgetSpec(size=1)))
        async with asyncio.timeout(60):
            await first.wait()
            for _ in range(_TURNS):
                await asyncio.sleep(0)
            sys.setprofile(record)
            await cluster.client.patch(Widget, "one", MergePatch({"spec": {"size": 2}}), namespace="default")
            await second.wait()
    return list(files)


def main() -> None:
    """Prints the files and their number."""
    files = asyncio.run(walked_files())
    print(*files, len(files), sep="\n")


if __name__ == "__main__":
    main()
