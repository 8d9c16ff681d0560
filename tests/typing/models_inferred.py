"""What an editor infers of generated classes; mypy checks this file with the rest, nothing runs it."""

from datetime import datetime
from typing import Any, assert_type

from navarch.api import Dynamic, Quantity
from navarch.client import Client
from project.models.golden.store_example_com.v1 import Address, Rack, Shop, ShopSpec, ShopStatus


def a_field_has_the_type_of_its_schema(shop: Shop) -> None:
    """What is required is there, everything else may be unset."""
    assert_type(shop.spec, ShopSpec)
    assert_type(shop.status, ShopStatus | None)
    assert_type(shop.spec.owner, str)
    assert_type(shop.spec.tills, int | None)
    assert_type(shop.spec.rent, float | None)
    assert_type(shop.spec.since, datetime | None)
    assert_type(shop.spec.logo, bytes | None)
    assert_type(shop.spec.door, int | str | None)
    assert_type(shop.spec.memory, Quantity | None)
    assert_type(shop.spec.racks, list[Rack] | None)
    assert_type(shop.spec.hours, list[int | None] | None)
    assert_type(shop.spec.prices, dict[str, float] | None)
    assert_type(shop.spec.anything, Any)
    assert_type(shop.spec.template, Dynamic | None)


async def a_kind_is_used_as_any_other(client: Client) -> None:
    """It is created by keywords, and the client returns its class."""
    shop = Shop(name="corner", spec=ShopSpec(owner="Ada", address=Address(city="Bern", cluster_ip="10.0.0.1")))
    assert_type(await client.create(shop), Shop)
    assert_type((await client.get(Shop, "corner")).spec.address.city, str)
