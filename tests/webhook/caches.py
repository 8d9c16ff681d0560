"""A custom kind, and an operator with webhooks for it."""

from __future__ import annotations

from navarch import Operator, Resource, Spec, Status
from navarch.k8s.core.v1 import ConfigMap
from navarch.webhook import Review


class WebcacheSpec(Spec):
    size: int = 1
    password: str = ""
    ports: list[int] = []


class Webcache(Resource[WebcacheSpec, Status], group="cache.example.com", version="v1", sensitive=()):
    """A cache."""


def webcache(size: int = 1, name: str = "cache") -> Webcache:
    return Webcache(name=name, namespace="default", spec=WebcacheSpec(size=size))


def new_operator(name: str = "cache-operator") -> Operator:
    """An operator whose webhooks refuse to shrink a cache, and label ConfigMaps."""
    operator = Operator(name, election=False)

    @operator.controller(Webcache)
    async def reconcile(webcache: Webcache, ctx: object) -> None: ...

    @operator.validate(
        Webcache,
        operations=("UPDATE",),
        match_conditions={"resized": "object.spec.size != oldObject.spec.size"},
    )
    async def check_size(webcache: Webcache, review: Review[Webcache]) -> None:
        if review.old is not None and webcache.spec.size < review.old.spec.size:
            review.deny("spec.size", "must not shrink")

    @operator.validate(Webcache, operations=("DELETE",))
    def keep(webcache: Webcache, review: Review[Webcache]) -> None:
        if webcache.annotations.get("keep"):
            review.deny("it is kept; remove the annotation keep")

    @operator.mutate(ConfigMap, labels={"cache": "yes"}, failure_policy="Ignore")
    def label(config: ConfigMap, review: Review[ConfigMap]) -> None:
        config.labels["labelled"] = "yes"
        review.warn("it was labelled")

    return operator
