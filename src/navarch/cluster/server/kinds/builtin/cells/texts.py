"""How parts of objects are shown in one cell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from navarch.cluster.server.wire.request import Json

__all__ = ["NONE", "UNSET", "containers", "go_selector", "joined", "labels", "name", "selector", "some"]

NONE: Final = "<none>"
UNSET: Final = "<unset>"
_SHOWN: Final = 3


def name(value: Json) -> str:
    """The object's name."""
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
