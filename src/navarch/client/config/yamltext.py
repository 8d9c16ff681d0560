"""YAML as kubectl takes it: plain data, and numbers where text is wanted keep the form they were written in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from navarch.errors import ConfigError

if TYPE_CHECKING:
    import yaml

# libyaml's composer recurses on the C stack: a file of nothing but brackets would end the process.
_DEEPEST = 100
_TRUE = frozenset({"y", "yes", "true", "on"})
_SPECIAL = ("int", "float", "timestamp", "binary")


class Written(str):
    """A number or a date as it stands in the file, so that `token: 0123` does not lose its zero."""

    __slots__ = ()

    @property
    def value(self) -> int | float | str:
        """The number, or the text itself where it is none that JSON knows."""
        for number in (int, float):
            try:
                return _finite(number(self))
            except ValueError:
                continue
        return str(self)


def parse(data: bytes, where: str) -> Any:
    """The one document in `data`, or None if there is none; ConfigError names the line and the column."""
    import yaml  # noqa: PLC0415 - costs as much as the rest of this package, and in a cluster it is never needed

    loader = _loader()
    try:
        _refuse_depth(data, loader, where)
        return yaml.load(data, Loader=loader)  # noqa: S506 - derived from the safe loader
    except yaml.YAMLError as error:
        raise ConfigError(f"{where}: expected YAML, got {_describe(error)}") from None


def _finite(number: float) -> int | float:
    if number != number or number in {float("inf"), float("-inf")}:  # noqa: PLR0124 - only NaN differs from itself
        raise ValueError("JSON has no such number")
    return number


_loader_class: Any = None


def _loader() -> Any:
    global _loader_class  # noqa: PLW0603 - the class can only be made once PyYAML has been imported
    if _loader_class is None:
        _loader_class = _make_loader()
    return _loader_class


def _make_loader() -> Any:
    import yaml  # noqa: PLC0415 - see parse

    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    loader: Any = type("KubeconfigLoader", (base,), {})
    for kind in _SPECIAL:
        loader.add_constructor(f"tag:yaml.org,2002:{kind}", lambda self, node: Written(self.construct_scalar(node)))
    loader.add_constructor("tag:yaml.org,2002:bool", lambda self, node: self.construct_scalar(node).lower() in _TRUE)
    return loader


def _refuse_depth(data: bytes, loader: Any, where: str) -> None:
    import yaml  # noqa: PLC0415 - see parse

    depth = 0
    for event in yaml.parse(data, Loader=loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > _DEEPEST:
            line = getattr(event.start_mark, "line", 0) + 1  # stubs differ in whether an event has a mark
            raise ConfigError(f"{where}: expected a kubeconfig, got more than {_DEEPEST} nested levels at line {line}")


def _describe(error: yaml.YAMLError) -> str:
    """What is wrong and where; the problem's own words only where they cannot quote the file."""
    from yaml.parser import ParserError  # noqa: PLC0415 - see parse
    from yaml.scanner import ScannerError  # noqa: PLC0415 - see parse

    problem = getattr(error, "problem", None) if isinstance(error, ParserError | ScannerError) else None
    mark = getattr(error, "problem_mark", None)
    place = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
    if mark is None:
        return "bytes that are no text (is it a kubeconfig at all?)"
    return f"something else{place}: {problem or 'a value that is no plain data, or a second document'}"
