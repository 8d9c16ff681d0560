"""Kinds for the tests of CRDs. `Everything` uses every marker and every type that a schema can describe."""

from __future__ import annotations

import datetime as dt
import enum
import uuid
from typing import Annotated, Any, Literal

from navarch.api import (
    Atomic,
    Column,
    Dynamic,
    Embedded,
    Immutable,
    IntOrString,
    ListMap,
    ListSet,
    Meta,
    Model,
    ObjectMeta,
    OneOf,
    Preserve,
    RawSchema,
    Resource,
    Rule,
    Scale,
    Selectable,
    Spec,
    Status,
    field,
)

GROUP = "kinds.schema.example.com"


class Colour(enum.StrEnum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Port(Model):
    """Where to listen."""

    name: Annotated[str, Meta(min_length=1, max_length=15)]
    """A name, unique in the list."""
    protocol: Literal["TCP", "UDP"] = "TCP"
    number: Annotated[int, Meta(ge=1, le=65535, format="int32")] | None = None
    target: IntOrString | None = None


class Window(Model, rules=(Rule("self.start <= self.end", message="start must not be after end"),)):
    start: Annotated[int, Meta(ge=0)] = 0
    end: Annotated[int, Meta(ge=0)] = 24


class Source(
    Model,
    one_of=(
        OneOf("bucket", "volume_name"),
        OneOf("user", "token", require="at most"),
        OneOf("hot", "cold", require="at least"),
    ),
):
    bucket: str | None = None
    volume_name: str | None = None
    user: str | None = None
    token: str | None = None
    hot: bool | None = None
    cold: bool | None = None


class Tree(Model):
    value: int
    children: Annotated[list[Annotated[Tree, Preserve()]], Meta(max_length=8)] = []


class File(Model, tag="file", tag_field="type"):
    path: str


class Web(Model, tag="web", tag_field="type"):
    url: Annotated[str, Meta(format="uri")]
    retries: int = 3


class EverythingSpec(
    Spec,
    rules=(
        Rule(
            "self.replicas <= self.limit",
            message_expression="self.replicas > 50 ? 'far too many replicas' : 'too many replicas'",
            reason="FieldValueForbidden",
            field_path=".replicas",
        ),
    ),
):
    """What is wanted, in every form that a field can have."""

    replicas: Annotated[int, Meta(ge=0, le=100), Column("Replicas", description="How many are wanted.")] = 1
    """How many to run."""
    limit: Annotated[int, Meta(multiple_of=5)] = 10
    ratio: Annotated[float, Meta(gt=0, lt=1.5)] = 0.5
    title: Annotated[str, Meta(min_length=1, max_length=40, pattern="^[A-Z].*$", title="Title", example="Cache")]
    """A title that is long enough to be cut where a limit is given."""
    colour: Annotated[Colour, Selectable(), Column("Colour", priority=1)] = Colour.RED
    level: Level = Level.LOW
    mode: Annotated[Literal["fast", "safe"], Immutable("cannot be changed")] = "safe"
    zone: Annotated[str, Immutable(), Meta(max_length=20)] | None = None
    enabled: bool = True
    blob: bytes | None = None
    since: dt.datetime | None = None
    day: dt.date | None = None
    identity: uuid.UUID | None = None
    small: Annotated[int, Meta(format="int32")] | None = None
    odd: Annotated[int, Meta(enum=(1, 3, 5))] | None = None
    note: Annotated[str, Meta(nullable=True, max_length=10)] | None = None
    surge: IntOrString = "25%"
    cluster_ip: str | None = field(name="clusterIP", default=None)
    ports: Annotated[list[Port], ListMap("name", "protocol"), Meta(max_length=8)] = []
    tags: Annotated[list[Annotated[str, Meta(max_length=10)]], ListSet(), Meta(max_length=5)] = []
    zones: set[str] | None = None
    steps: Annotated[list[str], Atomic()] = []
    names: Annotated[list[Annotated[str, Meta(max_length=20), Rule("self != 'nobody'")]], Meta(max_length=10)] = []
    labels: dict[str, str] = {}
    selector: Annotated[dict[str, str], Atomic()] | None = None
    quotas: Annotated[
        dict[str, Annotated[int, Rule("self >= 0", message="no negative quota")]], Meta(max_length=9)
    ] = {}
    window: Window = Window()
    late: Window | None = None
    source: Source | None = None
    tree: Tree | None = None
    origin: File | Web | None = None
    settings: dict[str, Any] = {}
    anything: Any = None
    open: Annotated[Port, Preserve()] | None = None
    raw: Annotated[Any, RawSchema({"type": "string", "maxLength": 3})] | None = None
    template: Annotated[dict[str, Any], Embedded()] | None = None
    manifest: Dynamic | None = None
    pods: ObjectMeta | None = None
    counter: (
        Annotated[
            int, Rule("!oldSelf.hasValue() || self >= oldSelf.value()", optional_old_self=True, message="only up")
        ]
        | None
    ) = None
    short: Annotated[str, Meta(description="Said in the marker, not in a docstring.", description_limit=20)] | None = (
        None
    )
    secret: Annotated[str, Meta(description_limit=0)] | None = None
    """Nobody will read this."""


class EverythingStatus(Status):
    replicas: int = 0
    selector: str = ""
    started: Annotated[dt.datetime, Column("Started")] | None = None


class Everything(
    Resource[EverythingSpec, EverythingStatus],
    group=GROUP,
    version="v1",
    plural="everythings",
    singular="everything",
    short_names=("evr",),
    categories=("all", "tests"),
    columns=(Column("Ready", path=".status.conditions[?(@.type=='Ready')].status", type="string"),),
    scale=Scale(selector=".status.selector"),
    rules=(Rule("self.metadata.name.size() <= 40", message="names are short here"),),
    labels={"team": "schema"},
    annotations={"example.com/note": "made by a test"},
):
    """A kind with everything."""


class OldGaugeSpec(Spec):
    size: int = 1


class OldGauge(
    Resource[OldGaugeSpec, Status],
    group=GROUP,
    version="v1alpha1",
    kind="Gauge",
    namespaced=False,
    storage=False,
    deprecated="v1alpha1 will be gone soon",
):
    """A gauge, as it was."""


class GaugeSpec(Spec):
    size: Annotated[int, Meta(ge=1)] = 1
    unit: str


class Gauge(Resource[GaugeSpec, None], group=GROUP, version="v1", namespaced=False):
    """A gauge without status, in the whole cluster."""


class PlainSpec(Spec):
    size: Annotated[int, Meta(ge=0, le=64)] = 1
    """How many memcached pods to run."""


class Plain(Resource[PlainSpec, Status], group=GROUP, version="v1"):
    """As small as a kind can be."""
