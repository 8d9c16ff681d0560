"""The common part of all verbs: paths, query parameters, and decoding of answers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from navarch.api import Fields, Kind, Labels
from navarch.client.call import ApiCaller, RetryPolicy
from navarch.client.discovery import Discovery
from navarch.client.target import ALL, Readable
from navarch.client.transport import Request
from navarch.errors import InvalidValueError

K = TypeVar("K")

FieldValidation = Literal["Strict", "Warn", "Ignore"]
LabelSelector = str | Mapping[str, str] | Labels | None
FieldSelector = str | Mapping[str, str] | Fields | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of every call of one client.

    `namespace` is that of namespaced kinds if a call names none; `manager` owns the applied fields; `timeout` bounds
    each call in seconds, with its retries; with `dry_run` the server checks writes and stores nothing.
    """

    namespace: str = "default"
    manager: str = "navarch"
    field_validation: FieldValidation = "Strict"
    dry_run: bool = False
    timeout: float = 30.0
    page_size: int | None = None
    retry: RetryPolicy = RetryPolicy()

    def __post_init__(self) -> None:
        if not _is_limit(self.timeout):
            raise InvalidValueError(f"expected timeout as a number of seconds above 0, got {self.timeout!r}")


def _is_limit(seconds: object) -> bool:
    return isinstance(seconds, int | float) and 0 < seconds < math.inf


class RestClient:
    """The part of a client below its verbs."""

    def __init__(self, caller: ApiCaller, options: Options) -> None:
        self._caller = caller
        self.options = options
        self.discovery = Discovery(caller, options.timeout)

    def _path(self, kind: Kind, namespace: str | None, name: str | None = None, subresource: str | None = None) -> str:
        """Returns the path of an object or a collection; all namespaces are possible only without a name."""
        if not kind.namespaced:
            return kind.path(namespace=None if namespace == ALL else namespace, name=name, subresource=subresource)
        if namespace == ALL:
            if name is not None:
                raise InvalidValueError(f"expected one namespace for {kind.plural} {name!r}, got all of them (ALL)")
            return kind.path()
        return kind.path(namespace=namespace or self.options.namespace, name=name, subresource=subresource)

    def _object_path(self, kind: Kind, namespace: str | None, name: str, subresource: str | None = None) -> str:
        """Returns the path of one object. Refuses None as a name: it would turn a delete into one of the whole
        collection.
        """
        if not isinstance(name, str):
            raise InvalidValueError(f"expected the name of one of {kind.plural}, got {name!r}")
        return self._path(kind, namespace, name, subresource)

    def _what(self, verb: str, kind: Kind, namespace: str | None, name: str | None = None) -> str:
        """Returns the call in a few words, for errors: "get pods default/web"."""
        if not kind.namespaced:
            return " ".join(filter(None, (verb, kind.resource, name)))
        place = "in all namespaces" if namespace == ALL else namespace or self.options.namespace
        return f"{verb} {kind.resource} {place}/{name}" if name else f"{verb} {kind.resource} {place}"

    async def _object(self, kind: Readable[K], request: Request, what: str) -> K:
        """Sends the request and decodes the object of its answer."""
        answer = await self._caller.call(request, what)
        answer.type()
        return answer.decoded(kind.from_json)


def query_of(**parameters: Any) -> dict[str, str]:
    """Returns the given parameters as text, without those that are None, empty or False."""
    return {
        name: _text(value)
        for name, value in parameters.items()
        if value is not None and value is not False and value != ""
    }


def _text(value: Any) -> str:
    return "true" if value is True else str(value)


def selectors_of(labels: LabelSelector, fields: FieldSelector) -> dict[str, str]:
    """Returns the selectors as parameters. Raises for text that is no selector, with the position of the fault."""
    given = {"labelSelector": _selector(Labels, labels), "fieldSelector": _selector(Fields, fields)}
    return {name: text for name, text in given.items() if text}


def _selector(kind: type[Labels | Fields], given: str | Mapping[str, str] | Labels | Fields | None) -> str:
    if isinstance(given, Mapping):
        return str(kind.of(given))
    if isinstance(given, str):
        return str(kind(given))
    if given is not None and not isinstance(given, kind):
        raise InvalidValueError(f"expected a selector as text, as a mapping or as {kind.__name__}, got {given!r}")
    return str(given or "")
