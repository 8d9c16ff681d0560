"""`Metrics`: the metrics of one operator in Prometheus' exposition format."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from navarch.observe.families import Histogram, MetricFamily, MetricSource, Sample

if TYPE_CHECKING:  # imported with the first scrape: an operator without an endpoint never needs it
    from prometheus_client import CollectorRegistry, Metric

Value = float | Histogram


class Metrics:
    """The metric sources of one endpoint. It belongs to the event loop of its sources.

    Samples of two sources with the same name and labels are joined: counters are added. The registry `own` of the
    operator's author is exposed too; it wins where both have a metric of the same name.
    """

    def __init__(self, own: CollectorRegistry | None = None) -> None:
        self._own = own
        self._sources: dict[int, MetricSource] = {}

    def add(self, source: MetricSource) -> None:
        """Exposes the source from now on; adding it again changes nothing."""
        self._sources[id(source)] = source

    def remove(self, source: MetricSource) -> None:
        """Stops exposing the source; an unknown source changes nothing."""
        self._sources.pop(id(source), None)

    def samples(self) -> Iterator[Sample]:
        """Yields the current samples of all sources, without those of the operator's own registry."""
        for source in self._sources.values():
            yield from source.samples()

    @cached_property
    def _runtime(self) -> CollectorRegistry:
        """Returns the registry of the sources and of the process (memory, CPU, open files, garbage collection)."""
        from prometheus_client import (  # noqa: PLC0415 - see above
            CollectorRegistry,
            GCCollector,
            PlatformCollector,
            ProcessCollector,
        )

        registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        GCCollector(registry=registry)
        registry.register(_Collector(self._sources))
        return registry

    @cached_property
    def _shown(self) -> CollectorRegistry:
        """Returns the registry of all metrics, each name once: prometheus_client's global registry also has those of the process."""
        if self._own is None:
            return self._runtime
        from prometheus_client import CollectorRegistry  # noqa: PLC0415 - see above

        both = CollectorRegistry()
        both.register(_Once(self._own, self._runtime))
        return both

    def exposition(self, accept: str = "") -> tuple[bytes, str]:
        """Returns all metrics as text, and the content type; OpenMetrics if the Accept header `accept` prefers it."""
        from prometheus_client.exposition import choose_encoder  # noqa: PLC0415 - see above

        encode, content_type = choose_encoder(accept)
        return encode(self._shown), content_type


class _Collector:
    """The collector of the sources for prometheus_client."""

    def __init__(self, sources: dict[int, MetricSource]) -> None:
        self._sources = sources

    def describe(self) -> Iterable[Metric]:
        """Describes no metric in advance: the families depend on the sources."""
        return ()

    def collect(self) -> Iterator[Metric]:
        for family, values in _joined(self._sources.values()).items():
            yield _metric(family, values)


class _Once:
    """The collector of several registries; the first one with a name wins."""

    def __init__(self, *registries: CollectorRegistry) -> None:
        self._registries = registries

    def describe(self) -> Iterable[Metric]:
        """Describes no metric in advance, as above."""
        return ()

    def collect(self) -> Iterator[Metric]:
        shown: set[str] = set()
        for registry in self._registries:
            for metric in registry.collect():
                if metric.name not in shown:
                    shown.add(metric.name)
                    yield metric


def _joined(sources: Iterable[MetricSource]) -> dict[MetricFamily, dict[tuple[str, ...], Value]]:
    found: dict[MetricFamily, dict[tuple[str, ...], Value]] = {}
    for source in sources:
        for family, labels, value in source.samples():
            values = found.setdefault(family, {})
            values[labels] = _together(family, values[labels], value) if labels in values else value
    return found


def _together(family: MetricFamily, one: Value, other: Value) -> Value:
    if isinstance(one, Histogram) and isinstance(other, Histogram):
        return one + other
    assert not isinstance(one, Histogram), family.name
    assert not isinstance(other, Histogram), family.name
    return family.joined(float(one), float(other))


def _metric(family: MetricFamily, values: dict[tuple[str, ...], Value]) -> Metric:
    from prometheus_client.core import (  # noqa: PLC0415 - see above
        CounterMetricFamily,
        GaugeMetricFamily,
        HistogramMetricFamily,
    )

    if family.kind == "histogram":
        histogram = HistogramMetricFamily(family.name, family.help, labels=family.labels)
        for labels, value in values.items():
            assert isinstance(value, Histogram), family.name
            histogram.add_metric(labels, value.cumulative(), value.total)
        return histogram
    kind = CounterMetricFamily if family.kind == "counter" else GaugeMetricFamily
    metric = kind(family.name, family.help, labels=family.labels)
    for labels, value in values.items():
        assert not isinstance(value, Histogram), family.name
        metric.add_metric(labels, value)
    return metric
