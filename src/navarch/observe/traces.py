"""OpenTelemetry traces from a watch event to the writes that it caused.

Traces are off until `enable()`; while they are off, every call returns one shared span that does nothing. OpenTelemetry
is an extra (`pip install navarch[otel]`); the exporter is configured in OpenTelemetry, as in any other program.
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

# Names of OpenTelemetry's semantic conventions; all other attributes get the prefix "navarch.".
_AGREED: Final = {
    "method": "http.request.method",
    "code": "http.response.status_code",
    "path": "url.path",
    "host": "server.address",
    "namespace": "k8s.namespace.name",
}


class Span(Protocol):
    """Work in progress; a context manager. An exception that leaves the block marks the span as failed."""

    def set(self, **attributes: Attribute) -> None:
        """Adds attributes that are known later, for example the status code of an answer."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...


@dataclass(frozen=True, slots=True)
class SpanCause:
    """An event to which the span of the work that it caused can be linked."""

    context: SpanContext
    attributes: Mapping[str, Attribute]


def enabled() -> bool:
    """Returns whether spans are recorded; check it before computing expensive attributes."""
    return _switch.tracer is not None


def enable(provider: TracerProvider | None = None) -> None:
    """Records spans from now on, with the given provider or OpenTelemetry's global one.

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
    """Records no new spans; open spans still end normally."""
    _switch.tracer = None


def span(name: str, /, causes: Iterable[SpanCause | None] = (), **attributes: Attribute) -> Span:
    """Returns a span inside the current one, linked to its causes."""
    tracer = _switch.tracer
    return _NOTHING if tracer is None else _started(tracer, name, causes, attributes, client=False)


def request(method: str, path: str, **attributes: Attribute) -> Span:
    """Returns the span of a request to a server; `set(code=…)` adds the status code."""
    tracer = _switch.tracer
    if tracer is None:
        return _NOTHING
    return _started(tracer, method, (), {"method": method, "path": path, **attributes}, client=True)


def mark(name: str, /, **attributes: Attribute) -> SpanCause | None:
    """Records an event of this moment as a span of no length; returns None while traces are off.

    A watch event marks its arrival with its resourceVersion; the span of the reconcile is linked to it.
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
    """The span while traces are off: it does nothing."""

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
    """A span of OpenTelemetry; it is the current span while it is entered."""

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
