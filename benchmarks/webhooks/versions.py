"""A second version of Widgets: `replicas` has another name."""

from __future__ import annotations

from navarch import Resource, Spec
from widgets import GROUP, PLURAL, Port, WidgetStatus

VERSION = "v2"


class NextWidgetSpec(Spec):
    size: int = 1
    image: str = ""
    args: list[str] = []
    env: dict[str, str] = {}
    ports: list[Port] = []
    note: str = ""


class NextWidget(
    Resource[NextWidgetSpec, WidgetStatus], group=GROUP, version=VERSION, kind="Widget", plural=PLURAL, storage=False
):
    """Something to convert by the thousand."""
