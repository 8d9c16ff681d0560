"""Traces from a watch event to the writes it led to, by OpenTelemetry.

Off until `enable()`; while off, every call returns one shared object that does nothing. OpenTelemetry is an extra
(`pip install navarch[otel]`); where spans are sent is configured there, as in any other program.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Final, Protocol, Self

from navarch.errors import ConfigError

if TYPE_CHECKING:  # an extra, imported by `enable` only
    from opentelemetry.trace import Span as OtelSpan
    from opentelemetry.trace import SpanContext, SpanKind, Tracer, TracerProvider

__all__ = ["Attribute", "Span", "SpanCause", "disable", "enable", "enabled", "mark", "request", "span"]

Attribute = str | int | float | bool

# What OpenTelemetry has agreed names for; everything else is ours.
_AGREED: Final = {
    "method": "http.request.method",
    "code": "http.response.status_code",
    "path": "url.path",
    "host": "server.address",
    "namespace": "k8s.namespace.name",
}


class Span(Protocol):
    """A piece of work while it goes on; a context manager. An exception that leaves it marks it as failed."""

    def set(self, **attributes: Attribute) -> None:
        """Adds what is known only now, for example the status of an answer."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...


@dataclass(frozen=True, slots=True)
class SpanCause:
    """Something that happened, to which the span of the work that it led to can be linked."""

    context: SpanContext
    attributes: Mapping[str, Attribute]


def enabled() -> bool:
    """Whether spans are made; worth asking before attributes that are expensive to make."""
    return _switch.tracer is not None


def enable(provider: TracerProvider | None = None) -> None:
    """Makes spans from now on, with OpenTelemetry's global provider if none is given.

    Raises `ConfigError` if OpenTelemetry is not installed.
    """
    try:
        from opentelemetry import trace  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise ConfigError(
            "expected OpenTelemetry for traces, but it is not installed; run pip install navarch[otel]"
        ) from error
    _switch.tracer = trace.get_tracer("navarch", tracer_provider=provider)


def disable() -> None:
    """Makes no spans from now on; those that are open are still finished."""
    _switch.tracer = None


def span(name: str, /, causes: Iterable[SpanCause | None] = (), **attributes: Attribute) -> Span:
    """A piece of work inside the one that surrounds it; linked to what caused it."""
    tracer = _switch.tracer
    return _NOTHING if tracer is None else _started(tracer, name, causes, attributes, client=False)


def request(method: str, path: str, **attributes: Attribute) -> Span:
    """A request to a server; tell its status with `set(code=…)`."""
    tracer = _switch.tracer
    if tracer is None:
        return _NOTHING
    return _started(tracer, method, (), {"method": method, "path": path, **attributes}, client=True)


def mark(name: str, /, **attributes: Attribute) -> SpanCause | None:
    """Something that happened at this moment, as a span of no length; None while traces are off.

    A watch event marks its arrival with its resource version and is handed to the span of the reconcile.
    """
    tracer = _switch.tracer
    if tracer is None:
        return None
    named = _named(attributes)
    marked = tracer.start_span(name, attributes=named)
    marked.end()
    return SpanCause(marked.get_span_context(), named)


class _TracerSwitch:
    def __init__(self) -> None:
        self.tracer: Tracer | None = None


_switch = _TracerSwitch()


class _NoSpan:
    """A span while traces are off."""

    __slots__ = ()

    def set(self, **attributes: Attribute) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        pass


_NOTHING: Final = _NoSpan()


class _Recorded:
    """A span of OpenTelemetry that is the current one while it is entered."""

    __slots__ = ("_manager", "_span")

    def __init__(self, manager: AbstractContextManager[OtelSpan]) -> None:
        self._manager = manager
        self._span: OtelSpan | None = None

    def set(self, **attributes: Attribute) -> None:
        if self._span is not None:
            self._span.set_attributes(_named(attributes))

    def __enter__(self) -> Self:
        self._span = self._manager.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._manager.__exit__(kind, error, traceback)


def _started(
    tracer: Tracer,
    name: str,
    causes: Iterable[SpanCause | None],
    attributes: Mapping[str, Attribute],
    *,
    client: bool,
) -> Span:
    from opentelemetry.trace import Link, SpanKind  # noqa: PLC0415 - an extra, imported by `enable` before

    links = [Link(cause.context, cause.attributes) for cause in causes if cause is not None]
    kind: SpanKind = SpanKind.CLIENT if client else SpanKind.INTERNAL
    return _Recorded(tracer.start_as_current_span(name, kind=kind, links=links, attributes=_named(attributes)))


def _named(attributes: Mapping[str, Attribute]) -> dict[str, Attribute]:
    return {_AGREED.get(name, f"navarch.{name}"): value for name, value in attributes.items()}
