"""events/v1 of Kubernetes v1.36.4. Generated: `python -m kubernetes_api generate`."""

from datetime import datetime

from navarch.api import Model, Object
from navarch.api.times import MicroTime
from navarch.k8s.core.v1 import EventSource, ObjectReference

__all__ = [
    "Event",
    "EventSeries",
]


class EventSeries(Model):
    count: int
    last_observed_time: MicroTime | None = None


class Event(Object, group="events.k8s.io", version="v1", plural="events", has_status=False, short_names=("ev",)):
    action: str | None = None
    deprecated_count: int | None = None
    deprecated_first_timestamp: datetime | None = None
    deprecated_last_timestamp: datetime | None = None
    deprecated_source: EventSource | None = None
    event_time: MicroTime | None = None
    note: str | None = None
    reason: str | None = None
    regarding: ObjectReference | None = None
    related: ObjectReference | None = None
    reporting_controller: str | None = None
    reporting_instance: str | None = None
    series: EventSeries | None = None
    type: str | None = None
