"""Cells of tables: ages, joined lists, selectors, and the row of a kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from navarch._base.clock import Clock
from navarch.cluster.server.objects.types import TableColumn
from navarch.cluster.server.wire.request import Json
from navarch.cluster.server.wire.times import readable_time, wire_time

UNKNOWN = "<unknown>"
_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86400, 365 * 86400


def human_duration(seconds: int) -> str:
    """A duration as kubectl prints it: at most two units, the finer one only while it says something.

    >>> [human_duration(s) for s in (5, 119, 150, 3600, 90000, 12 * 86400)]
    ['5s', '119s', '2m30s', '60m', '25h', '12d']
    """
    if seconds < 0:
        return "<invalid>" if seconds < -1 else "0s"
    if seconds < 2 * _MINUTE:
        return f"{seconds}s"
    if seconds < 3 * _HOUR:
        return _in(seconds, _MINUTE, "m", 1, "s", two_until=10 * _MINUTE)
    if seconds < 2 * _DAY:
        return _in(seconds, _HOUR, "h", _MINUTE, "m", two_until=8 * _HOUR)
    if seconds < 2 * _YEAR:
        return _in(seconds, _DAY, "d", _HOUR, "h", two_until=8 * _DAY)
    return _in(seconds, _YEAR, "y", _DAY, "d", two_until=8 * _YEAR)


def _in(seconds: int, unit: int, letter: str, finer: int, finer_letter: str, *, two_until: int) -> str:
    count, rest = divmod(seconds, unit)
    rest //= finer
    return f"{count}{letter}{rest}{finer_letter}" if rest and seconds < two_until else f"{count}{letter}"


class Ages:
    """Formats ages by a clock."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def since(self, moment: str | None) -> str:
        """Returns the age of a timestamp; `<unknown>` without one."""
        then = readable_time(moment) if moment else None
        return UNKNOWN if then is None else human_duration(wire_time(self._clock.now()).since(then))

    def of(self, value: Json) -> str:
        """Returns the age of an object."""
        return self.since(value.get("metadata", {}).get("creationTimestamp"))

    def now(self) -> datetime:
        """Returns the current time."""
        return self._clock.now().astimezone(UTC)


NONE: Final = "<none>"
UNSET: Final = "<unset>"
_SHOWN: Final = 3


def name_of(value: Json) -> str:
    """Returns the name of an object."""
    found: str = value.get("metadata", {}).get("name", "")
    return found


def joined(parts: Iterable[Any], empty: str = "") -> str:
    """Parts with commas between them.

    >>> joined(["a", "b"]), joined([], "<none>")
    ('a,b', '<none>')
    """
    return ",".join(str(part) for part in parts) or empty


def some(parts: list[str], empty: str) -> str:
    """The first three of them, and how many more there are.

    >>> some(["a", "b", "c", "d"], "<none>")
    'a,b,c + 1 more...'
    """
    more = len(parts) - _SHOWN
    return f"{joined(parts[:_SHOWN])} + {more} more..." if more > 0 else joined(parts, empty)


def labels(found: Mapping[str, str] | None) -> str:
    """Labels, sorted.

    >>> labels({"b": "2", "a": "1"})
    'a=1,b=2'
    """
    return joined((f"{key}={value}" for key, value in sorted((found or {}).items())), NONE)


_OPERATORS: Final = {"In": " in ", "NotIn": " notin ", "Exists": "", "DoesNotExist": "!"}


def selector(found: Json | None) -> str:
    """A label selector in the text that kubectl takes.

    >>> selector({"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "c", "operator": "DoesNotExist"}]})
    'a=b,!c'
    """
    if found is None:
        return NONE
    equal = [(key, f"{key}={value}") for key, value in (found.get("matchLabels") or {}).items()]
    terms = [(each.get("key", ""), _requirement(each)) for each in found.get("matchExpressions") or ()]
    return joined((text for _, text in sorted(equal + terms, key=_by_key)), NONE)


def _by_key(term: tuple[str, str]) -> str:
    return term[0]


def _requirement(requirement: Json) -> str:
    key, operator = requirement.get("key", ""), requirement.get("operator", "")
    if operator == "DoesNotExist":
        return f"!{key}"
    if operator == "Exists":
        return str(key)
    return f"{key}{_OPERATORS.get(operator, ' ')}({joined(sorted(requirement.get('values') or ()))})"


def containers(spec: Json) -> tuple[str, str]:
    """The names and the images of a pod's containers."""
    found = spec.get("containers") or ()
    return joined(each.get("name", "") for each in found), joined(each.get("image", "") for each in found)


def go_selector(value: Json) -> str:
    """A LabelSelector as Go prints it, where nobody has said how it is shown.

    >>> go_selector({"matchLabels": {"a": "b"}})
    '&LabelSelector{MatchLabels:map[string]string{a: b,},MatchExpressions:[]LabelSelectorRequirement{},}'
    """
    wanted = "".join(f"{key}: {text}," for key, text in sorted((value.get("matchLabels") or {}).items()))
    others = "".join(
        f"LabelSelectorRequirement{{Key:{each.get('key', '')},Operator:{each.get('operator', '')},"
        f"Values:[{' '.join(each.get('values') or ())}],}},"
        for each in value.get("matchExpressions") or ()
    )
    labels_, kind = f"MatchLabels:map[string]string{{{wanted}}}", "[]LabelSelectorRequirement"
    return f"&LabelSelector{{{labels_},MatchExpressions:{kind}{{{others}}},}}"


Cells = Callable[[Json, Ages], list[Any]]
"""Makes the row of an object in a table."""


class Rows:
    """Makes the row of an object with the `cells` of its kind, or with its name and age."""

    def __init__(self, cells: Cells | None, columns: tuple[TableColumn, ...], ages: Ages) -> None:
        self._cells = cells
        self._columns = columns
        self._ages = ages

    def of(self, value: Json) -> list[Any]:
        """Returns the cells, one for each column."""
        if self._cells is not None:
            return self._cells(value, self._ages)
        return [self._plain(column.name, value) for column in self._columns]

    def _plain(self, column: str, value: Json) -> Any:
        metadata = value.get("metadata", {})
        match column:
            case "Name":
                return metadata.get("name", "")
            case "Created At":
                return metadata.get("creationTimestamp")
            case "Age":
                return self._ages.of(value)
            case _:
                return ""


def row(*parts: Callable[[Json], Any]) -> Callable[[Json, Ages], list[Any]]:
    """Returns cells that hold the name, the parts and the age of an object."""
    return lambda value, ages: [name_of(value), *(part(value) for part in parts), ages.of(value)]


def field_of(*path: str, default: Any = "") -> Callable[[Json], Any]:
    """Returns a function that reads the value at a path of an object."""

    def found(value: Json) -> Any:
        part: Any = value
        for step in path:
            part = part.get(step) if isinstance(part, dict) else None
        return default if part is None else part

    return found


def count_of(*path: str) -> Callable[[Json], int]:
    find = field_of(*path, default=())
    return lambda value: len(find(value))


Fields = Callable[[Json], Mapping[str, str]]


def selectable(*paths: str, default: str = "") -> Fields:
    split = [(path, path.split(".")) for path in paths]
    return lambda value: {path: _field_text(value, steps, default) for path, steps in split}


def _field_text(value: Any, steps: list[str], default: str) -> str:
    for step in steps:
        value = value.get(step) if isinstance(value, dict) else None
    if isinstance(value, bool):
        return "true" if value else "false"
    return default if value is None else str(value)
