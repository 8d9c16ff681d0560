"""What is special about one built-in kind: the parts that `BuiltinStrategy` is put together from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from navarch.api.names import DNS_SUBDOMAIN
from navarch.cluster.server.objects.types import Operation
from navarch.cluster.server.wire.request import Json
from navarch.errors import Cause

__all__ = ["Rules", "no_causes", "no_fields", "nothing", "path_segment_faults"]


def nothing(*_: Any) -> None:
    """Does nothing."""


def no_causes(*_: Any) -> list[Cause]:
    """Finds no fault."""
    return []


def no_warnings(*_: Any) -> list[str]:
    """Has nothing to say."""
    return []


def no_fields(_: Json) -> Mapping[str, str]:
    """Nothing that a field selector could name."""
    return {}


def no_grace(_value: Json, _asked: int | None) -> int:
    """Deleted at once."""
    return 0


def path_segment_faults(name: str) -> Sequence[str]:
    """The server's sentences about a name that only has to fit into a path: those of roles, for example."""
    if name in {".", ".."}:
        return [f"may not be '{name}'"]
    return [f"may not contain '{mark}'" for mark in ("/", "%") if mark in name]


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """The rules of a kind; what is not given is what most kinds do."""

    default: Callable[[Json], None] = nothing
    create: Callable[[Json, Operation], None] = nothing
    update: Callable[[Json, Json, Operation], None] = nothing
    update_status: Callable[[Json, Json, Operation], None] = nothing
    """What the server itself notes in a status that is written as a subresource."""
    check: Callable[[Json], Iterable[Cause]] = no_causes
    check_new: Callable[[Json], Iterable[Cause]] = no_causes
    """What is looked for in a new object only."""
    check_update: Callable[[Json, Json], Iterable[Cause]] = no_causes
    check_status: Callable[[Json, Json], Iterable[Cause]] = no_causes
    """What is wrong with a status that is written as a subresource."""
    warnings: Callable[[Json, Json | None], Iterable[str]] = no_warnings
    name_faults: Callable[[str], Sequence[str]] = DNS_SUBDOMAIN.faults
    """The server's sentences about the name of an object."""
    counts_generation: bool = False
    """Whether `metadata.generation` counts the changes of everything but metadata and status."""
    grace_seconds: Callable[[Json, int | None], int] = no_grace
    fields: Callable[[Json], Mapping[str, str]] = no_fields
    allows_unconditional_update: bool = True
    """Whether an update may leave out the version that it replaces."""
    never_empty: tuple[str, ...] = ()
    """The way to a map that is refused when nothing is in it: what is said then is that it is empty, not that it is not there."""
    empty_lists: tuple[tuple[str, ...], ...] = ()
    """The ways to lists that Go writes if nothing is in them: who sends an empty one owns it, though it is stored as none."""
    counts_labels: bool = False
    """Whether the generation counts the changes of labels, too."""
    checks_metadata: bool = True
    """Whether faults of the metadata are told beside others; else they are told only if there are no others."""
    qualifies_finalizers: bool = True
    """Whether a finalizer that is not Kubernetes' own has to say whose it is."""
