# Written by `navarch generate models` from shop.yaml. Do not edit it: run the command again.
# sha256:21127bb0452087f1220bd5e5afeb36a78f917b4a16036908dde978566b175223
"""store.example.com/v1beta1."""

from typing import Annotated

from navarch.api import Meta, Model, Object, field

__all__ = ["Shop", "ShopSpec", "ShopStatus"]


class ShopSpec(Model):
    owner: str | None = None


class ShopStatus(Model):
    tills: Annotated[int | None, Meta(format="")] = None


class Shop(
    Object,
    group="store.example.com",
    version="v1beta1",
    plural="shops",
    short_names=("sh", "shp"),
    categories=("all", "stores"),
    storage=False,
    deprecated="use store.example.com/v1",
    labels={"app": "store"},
    annotations={"example.com/channel": "stable"},
):
    spec: ShopSpec | None = None
    status: ShopStatus = field(default_factory=ShopStatus)
