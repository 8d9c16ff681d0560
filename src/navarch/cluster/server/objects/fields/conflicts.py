"""What an apply is told about fields that others own."""

from __future__ import annotations

from typing import NamedTuple

from navarch.cluster.server.objects.fields.elements import shown
from navarch.cluster.server.objects.fields.entries import Holder, Holding
from navarch.cluster.server.wire.go_text import go_quoted
from navarch.cluster.server.wire.status_errors import StatusError

__all__ = ["Conflict", "refused"]


class Conflict(NamedTuple):
    """A field that another one owns."""

    who: Holder
    holding: Holding
    path: tuple[str, ...]


def refused(conflicts: list[Conflict]) -> StatusError:
    """409, with every field."""
    causes = [
        {
            "reason": "FieldManagerConflict",
            "message": f"conflict with {_name(conflict)}",
            "field": _shown_path(conflict),
        }
        for conflict in conflicts
    ]
    return StatusError(409, "Conflict", _message(conflicts), details={"causes": causes})


def _message(conflicts: list[Conflict]) -> str:
    if len(conflicts) == 1:
        only = conflicts[0]
        return f"Apply failed with 1 conflict: conflict with {_name(only)}: {_shown_path(only)}"
    lines: list[str] = []
    for who in sorted({conflict.who: None for conflict in conflicts}, key=_sort_key):
        theirs = [conflict for conflict in conflicts if conflict.who == who]
        lines.append(f"conflicts with {_name(theirs[0])}:")
        lines += [f"- {_shown_path(conflict)}" for conflict in theirs]
    return f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(lines)


def _sort_key(who: Holder) -> tuple[str, ...]:
    return who.manager, who.operation, who.api_version, who.subresource


def _name(conflict: Conflict) -> str:
    who = conflict.who
    name = go_quoted(who.manager)
    if who.subresource:
        name += f" with subresource {go_quoted(who.subresource)}"
    return f"{name} using {conflict.holding.api_version}" if who.operation == "Update" else name


def _shown_path(conflict: Conflict) -> str:
    return "".join(map(shown, conflict.path))
