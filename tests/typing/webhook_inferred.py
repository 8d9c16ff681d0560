"""What the editor of a webhook function infers; mypy checks this file with the rest, nothing runs it."""

from collections.abc import Coroutine
from typing import Any, assert_type

from navarch import Operator, Resource, Review, Spec, Status
from navarch.api import Dynamic, Kind
from navarch.k8s.core.v1 import ConfigMap, Secret
from navarch.webhook import DeclaredWebhook, ReviewVerdict


class Shop(Resource[Spec, Status], group="shop.example.com", version="v1"): ...


operator = Operator("shop-operator")


@operator.validate(Shop, reads=(ConfigMap,))
async def check(shop: Shop, review: Review[Shop]) -> None:
    assert_type(review.old, Shop | None)
    assert_type(review.get(ConfigMap, "a"), ConfigMap | None)
    assert_type(review.list(ConfigMap), list[ConfigMap])
    assert_type(await review.fetch(Secret, "a"), Secret | None)
    review.deny("spec.size", "must not shrink")
    review.deny("not today")


@operator.mutate(Kind("example.com", "v1", "Thing", plural="things"))
def change(thing: Dynamic, review: Review[Dynamic]) -> None:
    assert_type(review.old, Dynamic | None)


assert_type(check, DeclaredWebhook[Shop, Coroutine[Any, Any, None]])
assert_type(change, DeclaredWebhook[Dynamic, None])


async def verdicts(shop: Shop) -> None:
    """A verdict is read without a cluster."""
    assert_type(await check.verdict(shop, old=shop), ReviewVerdict)
