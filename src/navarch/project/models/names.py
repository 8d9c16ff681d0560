"""Kubernetes' names as Python names: attributes, classes, modules."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Final

import msgspec

_WORD: Final = re.compile(r"[A-Z]+(?=V\d)|V\d+|[A-Z]{2,}s(?![a-z])|[A-Z]+\d*(?![a-z])|[A-Z]?[a-z]+\d*|\d+")
_NOT_NAME: Final = re.compile(r"[^0-9a-zA-Z]+")
_USED_IN_ANNOTATIONS: Final = frozenset({"bool", "bytes", "datetime", "dict", "field", "float", "int", "list", "str"})
"""A field of such a name would hide the type from the fields below it."""
_OF_EVERY_OBJECT: Final = frozenset(
    {"annotations", "api_version", "copy", "from_json", "kind", "labels", "metadata", "name", "namespace"}
)

_BUILT_IN: Final = frozenset(name for name in vars(builtins) if name[0].isupper())


def attributes(wires: Iterable[str], *, of_kind: bool = False) -> dict[str, str]:
    """Returns the Python name of each field, by its wire name; `of_kind` avoids those that every object has.

    >>> attributes(["clusterIP", "podCIDRs", "from", "x-y", "xY", "3d"])
    {'clusterIP': 'cluster_ip', 'podCIDRs': 'pod_cidrs', 'from': 'from_', 'x-y': 'x_y_2', 'xY': 'x_y', '3d': 'field_3_d'}
    """
    found: dict[str, str] = {}
    taken = set(_OF_EVERY_OBJECT if of_kind else ())
    known = list(wires)
    # The ones that need no other wire name come first: they keep the plain name.
    for wire in sorted(known, key=lambda wire: (wire_name(_attribute(wire)) != wire, wire)):
        name = _free(_attribute(wire), taken)
        taken.add(name)
        found[wire] = name
    return {wire: found[wire] for wire in known}


def _attribute(wire: str) -> str:
    name = "_".join(_WORD.findall(wire)).lower() or "field"
    if name[0].isdigit():
        name = f"field_{name}"
    return f"{name}_" if keyword.iskeyword(name) or name in _USED_IN_ANNOTATIONS else name


def _free(name: str, taken: set[str]) -> str:
    if name not in taken:
        return name
    if f"{name}_" not in taken and name in _OF_EVERY_OBJECT:
        return f"{name}_"
    number = 2
    while f"{name}_{number}" in taken:
        number += 1
    return f"{name}_{number}"


@cache
def wire_name(attribute: str) -> str:
    """Returns the wire name that a model gives a field of this name.

    >>> wire_name("cluster_ip")
    'clusterIp'
    """
    made = msgspec.defstruct("_", [attribute], rename="camel")
    return str(made.__struct_encode_fields__[0])


def class_part(wire: str, *, item: bool = False) -> str:
    """Returns what a field adds to the name of a class; an item of a list is one of several.

    >>> class_part("tlsConfig"), class_part("matchExpressions", item=True), class_part("ingress", item=True)
    ('TlsConfig', 'MatchExpression', 'Ingress')
    """
    words = [word for word in _NOT_NAME.split(wire) if word]
    name = "".join(word[0].upper() + word[1:] for word in words)
    return _singular(name) if item else name


def endings_of(part: str) -> list[str]:
    """Returns the part of a class name, and what is left of it without its first words.

    >>> endings_of("TokenSecretRef")
    ['TokenSecretRef', 'SecretRef', 'Ref']
    """
    starts = [match.start() for match in _WORD.finditer(part)]
    return [part[start:] for start in starts] if starts[:1] == [0] else [part]


def _singular(name: str) -> str:
    if name.endswith("ies") and len(name) > 4:
        return f"{name[:-3]}y"
    if name.endswith(("sses", "xes", "ches", "shes", "uses", "iases")):
        return name[:-2]
    return name[:-1] if name.endswith("s") and not name.endswith(("ss", "us", "is")) else name


def classes_of_kinds(kinds: Sequence[str], reserved: Iterable[str]) -> dict[str, str]:
    """Returns the class of each kind: its name, with Kind behind it where Python or the module needs that name.

    >>> classes_of_kinds(["Certificate", "Rule", "None"], ["Rule"])
    {'Certificate': 'Certificate', 'Rule': 'RuleKind', 'None': 'NoneKind'}
    """
    found: dict[str, str] = {}
    for kind in kinds:
        name = class_part(kind) or "Kind"
        name = f"Kind{name}" if name[0].isdigit() else name
        others = {*reserved, *_BUILT_IN, *found.values(), *(other for other in kinds if other != kind)}
        while keyword.iskeyword(name) or name in others:
            name += "Kind"
        found[kind] = name
    return found


def module_of_group(group: str) -> str:
    """Returns the package of a group.

    >>> module_of_group("cert-manager.io")
    'cert_manager_io'
    """
    name = _NOT_NAME.sub("_", group).strip("_").lower() or "core"
    name = f"group_{name}" if name[0].isdigit() else name
    return f"{name}_" if keyword.iskeyword(name) else name


def class_names(paths: Sequence[tuple[str, ...]], taken: Iterable[str]) -> list[str]:
    """Returns a name for each path of name parts: its last part and as many before it as tell it from all others.

    The order of the paths does not matter, but where two paths make the same name as a whole: those are numbered.

    >>> class_names([("Route", "Rule", "Match"), ("Route", "Filter", "Match"), ("Route", "Rule")], ["Rule"])
    ['RuleMatch', 'FilterMatch', 'RouteRule']
    """
    reserved = {*taken, *_BUILT_IN}
    lengths = [1] * len(paths)
    while clashing := _clashes(paths, lengths, reserved):
        longer = [index for index in clashing if lengths[index] < len(paths[index])]
        if not longer:
            break
        for index in longer:
            lengths[index] += 1
    names = [_name(path, length) for path, length in zip(paths, lengths, strict=True)]
    return _numbered(names, reserved)


def _clashes(paths: Sequence[tuple[str, ...]], lengths: list[int], reserved: set[str]) -> list[int]:
    by_name: dict[str, list[int]] = {}
    for index, (path, length) in enumerate(zip(paths, lengths, strict=True)):
        by_name.setdefault(_name(path, length), []).append(index)
    return [index for name, found in by_name.items() for index in found if len(found) > 1 or name in reserved]


def _name(path: tuple[str, ...], length: int) -> str:
    name = "".join(path[-length:]) or "Struct"
    return f"Struct{name}" if name[0].isdigit() else name


def _numbered(names: list[str], reserved: set[str]) -> list[str]:
    used, given = set(reserved), []
    for name in names:
        free, number = name, 2
        while free in used:
            free, number = f"{name}{number}", number + 1
        used.add(free)
        given.append(free)
    return given
