"""The numbers of one operator in Prometheus' form."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from navarch.observe.families import Histogram, MetricFamily, MetricSource

if TYPE_CHECKING:  # imported when somebody looks: an operator without an endpoint never needs it
    from prometheus_client import CollectorRegistry, Metric

__all__ = ["Metrics"]

Value = float | Histogram


class Metrics:
    """The parts that one endpoint shows. Belongs to the event loop that its parts belong to.

    Numbers of two parts that have the same names and labels are shown as one: counts are added together. What `own`
    collects, a registry of whoever runs the operator, is shown too; a name that both have is its.
    """

    def __init__(self, own: CollectorRegistry | None = None) -> None:
        self._own = own
        self._parts: dict[int, MetricSource] = {}

    def add(self, part: MetricSource) -> None:
        """Shows the part's numbers from now on; adding it again changes nothing."""
        self._parts[id(part)] = part

    def remove(self, part: MetricSource) -> None:
        """Shows them no longer; a part that is not there changes nothing."""
        self._parts.pop(id(part), None)

    @cached_property
    def _runtime(self) -> CollectorRegistry:
        """The parts, and the process's own figures (memory, CPU, open files, garbage collection)."""
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
        registry.register(_Collector(self._parts))
        return registry

    @cached_property
    def _shown(self) -> CollectorRegistry:
        """All there is, each name once: prometheus_client's global registry has the process's figures as well."""
        if self._own is None:
            return self._runtime
        from prometheus_client import CollectorRegistry  # noqa: PLC0415 - see above

        both = CollectorRegistry()
        both.register(_Once(self._own, self._runtime))
        return both

    def exposition(self, accept: str = "") -> tuple[bytes, str]:
        """Everything as text, and its content type; OpenMetrics if `accept`, an Accept header, asks for that."""
        from prometheus_client.exposition import choose_encoder  # noqa: PLC0415 - see above

        encode, content_type = choose_encoder(accept)
        return encode(self._shown), content_type


class _Collector:
    """What prometheus_client asks."""

    def __init__(self, parts: dict[int, MetricSource]) -> None:
        self._parts = parts

    def describe(self) -> Iterable[Metric]:
        """Nothing is claimed beforehand: which families there are depends on the parts."""
        return ()

    def collect(self) -> Iterator[Metric]:
        for family, values in _joined(self._parts.values()).items():
            yield _metric(family, values)


class _Once:
    """What several registries collect, without names that came before."""

    def __init__(self, *registries: CollectorRegistry) -> None:
        self._registries = registries

    def describe(self) -> Iterable[Metric]:
        """Nothing is claimed beforehand, as above."""
        return ()

    def collect(self) -> Iterator[Metric]:
        shown: set[str] = set()
        for registry in self._registries:
            for metric in registry.collect():
                if metric.name not in shown:
                    shown.add(metric.name)
                    yield metric


def _joined(parts: Iterable[MetricSource]) -> dict[MetricFamily, dict[tuple[str, ...], Value]]:
    found: dict[MetricFamily, dict[tuple[str, ...], Value]] = {}
    for part in parts:
        for family, labels, value in part.samples():
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
