"""The class keywords of a kind: their names, which are required, and which a second version inherits."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import fields

from navarch.api.kind import Kind
from navarch.api.markers import Column, Scale
from navarch.api.model import checked_tuple
from navarch.errors import DefinitionError


class Declaration(msgspec.Struct, frozen=True, kw_only=True):
    """The class keywords of `Object` that only a CRD needs."""

    singular: str = ""
    list_kind: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()
    age_column: bool = True
    scale: Scale | None = None
    served: bool = True
    storage: bool = True
    deprecated: bool | str = False
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    schema_patch: dict[str, Any] | None = None


_OF_KIND = ("group", "version", "kind", "plural", "namespaced", "has_status")
OF_MODEL = ("rules", "one_of", "sensitive")
_OF_DECLARATION = tuple(field.name for field in fields(Declaration))
_OF_ONE_VERSION = frozenset({"version", "served", "storage", "deprecated"})
_LISTS = (("short_names", str), ("categories", str), ("columns", Column))
_TYPES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("group", "version", "kind", "plural", "singular", "list_kind"), (str,)),
    **dict.fromkeys(("namespaced", "has_status", "served", "storage", "age_column"), (bool,)),
    "deprecated": (bool, str),
    "scale": (Scale, type(None)),
    **dict.fromkeys(("labels", "annotations", "schema_patch"), (dict, type(None))),
}


def given(keywords: dict[str, Any]) -> dict[str, Any]:
    """Returns the keywords that are set; for those of the kind None means unset."""
    return {keyword: value for keyword, value in keywords.items() if value is not None or keyword not in _OF_KIND}


def refuse_unknown(name: str, keywords: dict[str, Any]) -> None:
    """Raises `DefinitionError` for an unknown keyword, such as a typo."""
    known = sorted((*_OF_KIND, *OF_MODEL, *_OF_DECLARATION))
    unknown = sorted(keywords.keys() - set(known))
    if unknown:
        raise DefinitionError(
            f"class {name}: unknown keyword {', '.join(unknown)}; expected one of {', '.join(known)}"
            f"{_hint(unknown[0], known)}"
        )


def refuse_other_types(name: str, keywords: dict[str, Any]) -> None:
    """Raises `DefinitionError` for a keyword of the wrong type: `namespaced="false"` would be true."""
    for keyword, expected in _TYPES.items():
        value = keywords.get(keyword, msgspec.UNSET)
        if value is not msgspec.UNSET and not isinstance(value, expected):
            names = " or ".join("None" if kind is type(None) else kind.__name__ for kind in expected)
            raise DefinitionError(f"class {name}: expected {keyword}= to be {names}, got {value!r}; correct it")


def _hint(keyword: str, known: list[str]) -> str:
    if keyword == "scope":
        return "; for a cluster-scoped kind write namespaced=False"
    from difflib import get_close_matches  # noqa: PLC0415 - most processes make no such mistake

    close = get_close_matches(keyword, known, n=1)
    return f"; did you mean {close[0]}=?" if close else ""


def refuse_without_version(name: str, keywords: dict[str, Any]) -> None:
    """Raises `DefinitionError` for keywords of a kind on a class without a version, which declares no kind."""
    if keywords:
        raise DefinitionError(f'class {name}: expected version= beside {", ".join(keywords)}=; add version="v1alpha1"')


def with_inherited(bases: tuple[type, ...], keywords: dict[str, Any]) -> dict[str, Any]:
    """Returns the keywords together with those that another version of the same kind inherits. Another kind inherits
    nothing.
    """
    base: Any = next((base for base in bases if hasattr(base, "__declaration__")), None)
    if base is None:
        return keywords
    known = {name: getattr(base.__kind__, name) for name in _OF_KIND}
    known |= {name: getattr(base.__declaration__, name) for name in _OF_DECLARATION}
    if any(keywords.get(name, known[name]) != known[name] for name in ("group", "kind")):
        return keywords
    return {name: value for name, value in known.items() if name not in _OF_ONE_VERSION} | keywords


def kind_of(name: str, keywords: dict[str, Any], *, custom: bool) -> Kind:
    """Returns the kind that the keywords declare; `custom` kinds need a group of their own."""
    group, kind = keywords.get("group"), keywords.get("kind") or name
    if group is None or (custom and not group):
        raise DefinitionError(
            f"class {name}: expected group= beside version=, got {'none' if group is None else repr(group)}: "
            f'the core group is Kubernetes\' own; add group="example.com"'
        )
    return Kind(
        group,
        keywords["version"],
        kind,
        plural=keywords.get("plural") or _plural(kind),
        namespaced=keywords.get("namespaced", True),
        has_status=keywords.get("has_status", True),
    )


def declaration_of(name: str, kind: Kind, keywords: dict[str, Any]) -> Declaration:
    """Returns the other keywords as a `Declaration`."""
    for keyword, expected in _LISTS:
        checked_tuple(keyword, keywords.get(keyword, ()), expected, name)
    declared = {keyword: keywords[keyword] for keyword in _OF_DECLARATION if keyword in keywords}
    return Declaration(**({"singular": kind.kind.lower()} | declared))


def _plural(kind: str) -> str:
    word = kind.lower()
    if word.endswith(("s", "x", "z", "ch", "sh")):
        return word + "es"
    if word.endswith("y") and word[-2:-1] not in set("aeiou"):
        return word[:-1] + "ies"
    return word + "s"
