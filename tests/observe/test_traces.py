"""Traces are recorded when enabled, and cost nothing otherwise."""

import sys
from collections.abc import Iterator

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from navarch.errors import ConfigError
from navarch.observe import traces


@pytest.fixture
def exporter() -> Iterator[InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    traces.enable(provider)
    yield exporter
    traces.disable()
    provider.shutdown()


def finished(exporter: InMemorySpanExporter) -> dict[str, ReadableSpan]:
    return {span.name: span for span in exporter.get_finished_spans()}


def test_nothing_is_made_while_off() -> None:
    """One shared span does nothing, whatever is called."""
    assert not traces.enabled()
    assert traces.span("reconcile", controller="memcached") is traces.request("GET", "/api")
    assert traces.mark("watch event") is None
    with traces.span("reconcile", [None]) as span:
        span.set(outcome="success")


def test_reconcile_is_linked_to_the_event_that_caused_it(exporter: InMemorySpanExporter) -> None:
    """The span has a link with the resourceVersion of the event, and the requests as children."""
    cause = traces.mark("watch event", kind="Memcached", resource_version="7")
    with traces.span("reconcile", [cause, None], controller="memcached", namespace="default") as span:
        with traces.request("PATCH", "/apis/apps/v1/namespaces/default/deployments/cache") as request:
            request.set(code=200)
        span.set(outcome="success")
    spans = finished(exporter)
    event, reconcile, patch = spans["watch event"], spans["reconcile"], spans["PATCH"]
    assert event.context is not None
    assert reconcile.context is not None
    (link,) = reconcile.links
    assert link.context == event.context
    assert link.attributes is not None
    assert link.attributes["navarch.resource_version"] == "7"
    assert event.start_time is not None
    assert patch.parent is not None
    assert patch.parent.span_id == reconcile.context.span_id
    assert reconcile.attributes == {
        "navarch.controller": "memcached",
        "k8s.namespace.name": "default",
        "navarch.outcome": "success",
    }


def test_request_has_the_agreed_names(exporter: InMemorySpanExporter) -> None:
    """Attributes have the names of OpenTelemetry's conventions."""
    with traces.request("GET", "/api/v1/pods", host="10.0.0.1") as request:
        request.set(code=404)
    span = finished(exporter)["GET"]
    assert span.kind is SpanKind.CLIENT
    assert span.attributes == {
        "http.request.method": "GET",
        "url.path": "/api/v1/pods",
        "server.address": "10.0.0.1",
        "http.response.status_code": 404,
    }


def test_exception_marks_the_span_as_failed(exporter: InMemorySpanExporter) -> None:
    """The exception propagates."""

    def fail() -> None:
        with traces.span("reconcile"):
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        fail()
    span = finished(exporter)["reconcile"]
    assert span.status.status_code is StatusCode.ERROR
    assert span.events[0].name == "exception"


def test_open_span_is_finished_after_disable(exporter: InMemorySpanExporter) -> None:
    """Disabling loses no open span."""
    with traces.span("reconcile"):
        traces.disable()
        assert not traces.enabled()
    assert "reconcile" in finished(exporter)


def test_missing_library_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the extra to install."""
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(ConfigError, match=r"pip install navarch\[otel\]"):
        traces.enable()
    assert not traces.enabled()
