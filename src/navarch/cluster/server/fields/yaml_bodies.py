"""YAML as Kubernetes reads it."""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec
import yaml

from navarch.cluster.server.fields.gotext import go_literal
from navarch.cluster.server.refusal import Refusal, bad_request

__all__ = ["read_yaml", "repeated_keys"]

_MOST_VALUES: Final = 1_000_000
_MOST_DEPTH: Final = 200
_TAG: Final = "tag:yaml.org,2002:"


class _BodyError(ValueError):
    """A body that is YAML, but no JSON; the text is all that is said."""


def _refused(why: str) -> Refusal:
    return bad_request(f"error decoding YAML: error converting YAML to JSON: {why}")


def read_yaml(body: bytes) -> Any:
    """The first document of a body; raises Refusal."""
    try:
        _check_depth(body)
        loader = _Loader(body)
        found = loader.get_data() if loader.check_data() else None
        _check_aliases(found)
    except _BodyError as error:
        raise _refused(str(error)) from None
    except yaml.YAMLError as error:
        raise _refused(f"yaml: {_said(error, body)}") from None
    except RecursionError:
        raise _refused("yaml: exceeded max depth") from None
    except ValueError as error:
        raise _refused(f"yaml: {error}") from None
    return found


def repeated_keys(body: bytes) -> list[str]:
    """What a body that can be read says twice, each with its line, in the order in which Go finds it."""
    loader = _Loader(body)
    root = loader.get_node() if loader.check_node() else None
    return [] if root is None else [*_repeated_in(root, loader)]


def _repeated_in(node: yaml.Node, loader: Any) -> Iterator[str]:
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _repeated_in(item, loader)
    elif isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            yield from _repeated_in(value, loader)
            name = go_literal(loader.construct_object(key, deep=True))
            if name in seen:
                yield f"line {key.start_mark.line + 1}: key {name} already set in map"
            seen.add(name)


def _said(error: yaml.YAMLError, body: bytes) -> str:
    if isinstance(error, yaml.reader.ReaderError):
        return str(error.reason)
    if not isinstance(error, yaml.MarkedYAMLError):
        return str(error)
    if isinstance(error, yaml.composer.ComposerError) and error.problem_mark is not None:
        line = body.decode(errors="replace").splitlines()[error.problem_mark.line]
        name = re.match(r"\*?([\w-]*)", line[error.problem_mark.column :])
        return f"unknown anchor '{name[1] if name else ''}' referenced"
    problem = (error.problem or "").replace("not allowed here", "not allowed in this context")
    row = error.problem_mark.line if error.problem_mark is not None else 0
    if row and isinstance(error, yaml.scanner.ScannerError):
        row += 1  # only there the real server counts from one
    return f"line {row}: {problem}" if row else problem


def _check_depth(body: bytes) -> None:
    """That the first document is not nested too deep: the loader is recursive, and written in C it would crash."""
    depth = 0
    for event in yaml.parse(body, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > _MOST_DEPTH:
            raise _BodyError("yaml: exceeded max depth")
        if isinstance(event, yaml.DocumentEndEvent):
            return


def _check_aliases(value: Any) -> None:
    """That aliases make neither a circle nor a body much larger than it looks."""
    sizes: dict[int, int] = {}

    def size(each: Any) -> int:
        if not isinstance(each, dict | list):
            return 1
        known = sizes.get(id(each))
        if known == 0:
            raise _BodyError("yaml: anchor value contains itself")
        if known is None:
            sizes[id(each)] = 0
            known = 1 + sum(map(size, each.values() if isinstance(each, dict) else each))
            sizes[id(each)] = known
        if known > _MOST_VALUES:
            raise _BodyError("yaml: document contains excessive aliasing")
        return known

    size(value)


_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_Base):  # type: ignore[misc] # whichever of the two there is
    """Scalars as Kubernetes reads them: times stay texts, and `y`, `1e3` and `0o17` are what they look like."""

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        self.flatten_mapping(node)
        pairs = [
            (self.construct_object(key, deep=True), self.construct_object(value, deep=deep))
            for key, value in node.value
        ]
        return {_key(key): value for key, value in pairs}

    def any_tag(self, _suffix: str, node: Any) -> Any:
        """What has a tag that nobody knows is what it is without it."""
        if isinstance(node, yaml.MappingNode):
            return self.construct_mapping(node, deep=True)
        return self.construct_sequence(node, deep=True) if isinstance(node, yaml.SequenceNode) else node.value

    def binary(self, node: Any) -> str:
        return base64.b64decode(node.value).decode(errors="replace")

    def integer(self, node: Any) -> int:
        text = node.value.replace("_", "").lower()
        sign, digits = (-1, text[1:]) if text[0] == "-" else (1, text.removeprefix("+"))
        is_octal = len(digits) > 1 and digits[0] == "0" and digits.isdigit()
        return sign * int(digits, 8 if is_octal else 0)

    def number(self, node: Any) -> float:
        text = node.value.lower().replace("_", "")
        value = float(text.replace(".inf", "inf").replace(".nan", "nan"))
        if not math.isfinite(value):
            shown = "NaN" if math.isnan(value) else ("+Inf" if value > 0 else "-Inf")
            raise _BodyError(f"json: unsupported value: {shown}")
        return int(value) if value.is_integer() else value


def _key(key: Any) -> str:
    if isinstance(key, dict | list):
        raise _BodyError(f"yaml: invalid map key: {go_literal(key)}")
    return key if isinstance(key, str) else msgspec.json.encode(key).decode()


_TRUE: Final = frozenset({"y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"})
_Loader.yaml_implicit_resolvers = {}
_Loader.add_implicit_resolver(
    f"{_TAG}bool",
    re.compile("(?:y|Y|yes|Yes|YES|n|N|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF)$"),
    list("yYnNtTfFoO"),
)
_Loader.add_implicit_resolver(f"{_TAG}null", re.compile("(?:~|null|Null|NULL|)$"), ["~", "n", "N", ""])
_Loader.add_implicit_resolver(
    f"{_TAG}int",
    re.compile("[-+]?(?:0b[01_]+|0o?[0-7_]+|0x[0-9a-fA-F_]+|0|[1-9][0-9_]*)$"),
    list("-+0123456789"),
)
_Loader.add_implicit_resolver(
    f"{_TAG}float",
    re.compile(
        r"(?:[-+]?(?:\.[0-9]+|[0-9][0-9_]*(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
    ),
    list("-+0123456789."),
)
_Loader.add_implicit_resolver(f"{_TAG}merge", re.compile("<<$"), ["<"])
_Loader.add_constructor(f"{_TAG}bool", lambda _loader, node: node.value in _TRUE)
_Loader.add_constructor(f"{_TAG}binary", _Loader.binary)
_Loader.add_constructor(f"{_TAG}int", _Loader.integer)
_Loader.add_constructor(f"{_TAG}float", _Loader.number)
_Loader.add_multi_constructor("!", _Loader.any_tag)
