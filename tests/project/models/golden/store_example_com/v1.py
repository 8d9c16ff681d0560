# Written by `navarch generate models` from shop.yaml. Do not edit it: run the command again.
# sha256:c5041fab4a6358bc869a134738e35eb28c66a73370865180f11241eb97b908a4
"""store.example.com/v1."""

from datetime import datetime
from typing import Annotated, Any

from navarch.api import (
    Atomic,
    Column,
    Dynamic,
    Embedded,
    IntOrString,
    ListMap,
    ListSet,
    Meta,
    Model,
    Object,
    Preserve,
    Quantity,
    Rule,
    Scale,
    SchemaPatch,
    Selectable,
    field,
)

__all__ = [
    "Address",
    "Card",
    "Cash",
    "Condition",
    "Payment",
    "Rack",
    "Room",
    "Shop",
    "ShopSpec",
    "ShopStatus",
    "Sign",
    "SignSpec",
    "Supplier",
]

_INT_OR_STRING = SchemaPatch({"anyOf": [{"type": "integer"}, {"type": "string"}]})


class Address(Model):
    city: Annotated[str, Selectable()]
    cluster_ip: Annotated[str | None, Meta(format="ipv4")] = field(name="clusterIP", default=None)
    zip: Annotated[int | None, Meta(format="", enum=(1000, 2000))] = None


class Supplier(Model):
    name: str


class Rack(Model):
    """One rack."""

    name: Annotated[str, Meta(max_length=9)]
    row: Annotated[int | None, Meta(default=0)] = None
    supplier: Supplier | None = None


class Room(Model):
    size: Annotated[int | None, Meta(format="")] = None


class SignSpec(Model):
    text: str | None = None


class Sign(Model):
    spec: SignSpec | None = None


class Cash(Model):
    pass


class Card(Model):
    number: str | None = None
    holder: str | None = None


class Payment(Model):
    cash: Cash | None = None
    card: Annotated[
        Card | None,
        Meta(max_length=2),
        SchemaPatch({"allOf": [{"anyOf": [{"required": ["number"]}, {"properties": {"holder": {"maxLength": 3}}}]}]}),
    ] = None


class ShopSpec(
    Model,
    rules=(
        Rule(
            "!has(oldSelf.owner) || self.owner == oldSelf.owner",
            message_expression='"owner is " + oldSelf.owner',
            reason="FieldValueForbidden",
            field_path=".owner",
        ),
    ),
):
    owner: Annotated[str, Meta(min_length=1, max_length=63, pattern=r"^[A-Z][a-z\-]+$"), Selectable()]
    """The person who owns the shop. The name is shown on the sign, on the till and on every receipt, so it is best kept
    short.
    """
    address: Annotated[Address, Atomic()]
    """Where it is."""
    tills: Annotated[int | None, Meta(ge=0, le=64, format="int32", default=1)] = None
    floors: Annotated[int | None, Meta(format="")] = None
    visitors: Annotated[int | None, Meta(multiple_of=5)] = None
    rent: Annotated[float | None, Meta(gt=0, lt=1)] = None
    open: Annotated[bool | None, Meta(default=False)] = None
    since: datetime | None = None
    logo: bytes | None = None
    day: Annotated[str | None, Meta(format="date")] = None
    state: Annotated[str | None, Meta(enum=("Open", "Closed", ""), nullable=True, default="Open")] = None
    door: Annotated[IntOrString | None, _INT_OR_STRING] = None
    window: Annotated[IntOrString | None, Meta(max_length=9)] = None
    memory: Annotated[Quantity | None, _INT_OR_STRING] = None
    racks: Annotated[list[Rack] | None, Meta(min_length=1, max_length=16), ListMap("name", "row")] = None
    delivery_supplier: Supplier | None = None
    return_supplier: Supplier | None = None
    tags: Annotated[
        list[Annotated[str, Meta(max_length=32), Rule("self != ''")]] | None,
        Meta(max_length=8),
        ListSet(),
    ] = None
    hours: Annotated[list[Annotated[int | None, Meta(format="")]] | None, Meta(default=[8, 18]), Atomic()] = None
    prices: Annotated[
        dict[str, Annotated[float, Meta(format="double")]] | None,
        Meta(min_length=1, max_length=99),
    ] = None
    rooms: dict[str, Room] | None = None
    notes: dict[str, Annotated[Any, Preserve()]] | None = None
    anything: Any = None
    open_object: dict[str, Any] | None = field(name="open_object", default=None)
    template: Dynamic | None = None
    sign: Annotated[Sign | None, Preserve(), Embedded()] = None
    parking: Cash | None = None
    payment: Annotated[
        Payment | None,
        Meta(title="Payment", default={"cash": {}}, example={"cash": {}}),
        SchemaPatch({"oneOf": [{"required": ["cash"]}, {"required": ["card"]}], "not": {"required": ["cash", "card"]}}),
    ] = None


class Condition(Model):
    type: str
    status: str


class ShopStatus(Model):
    tills: Annotated[int, Meta(format="int32")]
    selector: str | None = None
    conditions: Annotated[list[Condition] | None, ListMap("type")] = None


class Shop(
    Object,
    group="store.example.com",
    version="v1",
    plural="shops",
    short_names=("sh", "shp"),
    categories=("all", "stores"),
    columns=(
        Column("Tills", path=".spec.tills", type="integer", format="int32", description="Open tills."),
        Column("City", path=".spec.address.city", type="string", priority=1),
        Column("Age", path=".metadata.creationTimestamp", type="date"),
    ),
    scale=Scale(spec_replicas=".spec.tills", status_replicas=".status.tills", selector=".status.selector"),
    labels={"app": "store"},
    annotations={"example.com/channel": "stable"},
    rules=(Rule("self.metadata.name.size() < 40", message="the name must be short"),),
):
    """A shop with its tills.

    It "opens" at 8:00, see C:\\opening.
    """

    spec: ShopSpec
    """The desired shop."""
    status: ShopStatus | None = None
