"""One webhook function without a cluster: its verdict, its warnings, its patch."""

from __future__ import annotations

from typing import Any

import pytest

from navarch import Operator, Resource, Spec, Status
from navarch.api import Dynamic, Kind
from navarch.errors import InvalidValueError
from navarch.k8s.core.v1 import ConfigMap, Pod, Secret
from navarch.webhook import Review, ReviewError
from webhook.caches import Webcache, webcache


@pytest.fixture
def operator() -> Operator:
    return Operator("cache-operator")


async def test_denied_field_is_reported_like_a_schema_violation(operator: Operator) -> None:
    """A denial of a field is 422 Invalid, with the value, the field and the message as the API server has them."""

    @operator.validate(Webcache)
    def check(it: Webcache, review: Review[Webcache]) -> None:
        review.deny("spec.size", "must not shrink")
        review.deny("spec.ports[1]", "must be free")
        it.spec.size = 7

    subject = webcache(2)
    subject.spec.ports = [80, 443]
    verdict = await check.verdict(subject, old=webcache(3))

    assert not verdict.allowed
    assert verdict.patch == ()
    assert [(cause.field, cause.reason) for cause in verdict.causes] == [
        ("spec.size", "FieldValueInvalid"),
        ("spec.ports[1]", "FieldValueInvalid"),
    ]
    assert verdict.causes[1].message == "Invalid value: 443: must be free"
    assert verdict.message.startswith('Webcache.cache.example.com "cache" is invalid: [spec.size: Invalid value: ')
    assert verdict.status is not None
    assert (verdict.status["code"], verdict.status["reason"]) == (422, "Invalid")


async def test_denial_without_a_field_is_forbidden(operator: Operator) -> None:
    """A denial of the whole request is 403 Forbidden with all messages."""

    @operator.validate(Webcache)
    async def check(it: Webcache, review: Review[Webcache]) -> None:
        review.deny("not today")
        review.deny("not tomorrow")

    verdict = await check.verdict(webcache())
    assert verdict.message == "not today; not tomorrow"
    assert verdict.status is not None
    assert (verdict.status["code"], verdict.status["reason"]) == (403, "Forbidden")


class TokenSpec(Spec, sensitive=("token",)):
    token: str = ""


class Tokenholder(Resource[TokenSpec, Status], group="cache.example.com", version="v1"):
    """Holds a token."""


async def test_denial_never_shows_a_secret(operator: Operator) -> None:
    """The values of Secrets and of sensitive fields are not in the verdict."""

    @operator.validate(Tokenholder)
    def check(it: Tokenholder, review: Review[Tokenholder]) -> None:
        review.deny("spec.token", "is too short")

    @operator.validate(Secret)
    def check_secret(it: Secret, review: Review[Secret]) -> None:
        review.deny("stringData.password", "is too short")

    verdict = await check.verdict(Tokenholder(name="t", spec=TokenSpec(token="hunter2")))
    secret = await check_secret.verdict(Secret(name="s", string_data={"password": "hunter2"}))
    for each in (verdict, secret):
        assert each.causes[0].message == "Invalid value: is too short"
        assert "hunter2" not in repr(each)


async def test_patch_is_the_difference_and_keeps_unknown_fields(operator: Operator) -> None:
    """A mutating function changes the typed object; fields that the class lacks are in no patch."""

    @operator.mutate(Pod)
    def tolerate(pod: Pod, review: Review[Pod]) -> None:
        pod.labels["cache"] = "warm"

    wire = b'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","labels":{"a":"b"}},"spec":{"containers":[],"new":{"x":1}}}'
    verdict = await tolerate.verdict(Pod.from_json(wire))
    assert verdict.allowed
    assert verdict.patch == ({"op": "add", "path": "/metadata/labels/cache", "value": "warm"},)


async def test_unchanged_object_has_no_patch(operator: Operator) -> None:
    """A function that changes nothing sends no patch, also for an object with unset and unknown fields."""

    @operator.mutate(Pod)
    async def look(pod: Pod, review: Review[Pod]) -> None:
        assert pod.labels is not None

    wire = b'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[],"new":{"x":1}}}'
    assert (await look.verdict(Pod.from_json(wire))).patch == ()


async def test_kind_without_a_class_is_changed_as_json(operator: Operator) -> None:
    """A webhook for a Kind gets a Dynamic."""

    @operator.mutate(Kind("x.example.com", "v1", "Thing", plural="things"))
    def change(thing: Dynamic, review: Review[Dynamic]) -> None:
        thing["spec"]["size"] = 2

    thing = Dynamic({"apiVersion": "x.example.com/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": {"size": 1}})
    verdict = await change.verdict(thing)
    assert verdict.patch == ({"op": "replace", "path": "/spec/size", "value": 2},)


@pytest.mark.parametrize("change", ["name", "namespace", "uid"])
async def test_changed_identity_is_refused(operator: Operator, change: str) -> None:
    """A function that changes the name, namespace or uid of an object has failed."""

    @operator.mutate(Webcache)
    def rename(it: Webcache, review: Review[Webcache]) -> None:
        setattr(it.metadata, change, "another")

    with pytest.raises(ReviewError, match="expected rename to keep apiVersion, kind, name, namespace and uid"):
        await rename.verdict(webcache())


async def test_result_is_refused(operator: Operator) -> None:
    """A function that returns something has misunderstood the contract; the error tells the remedy."""

    @operator.validate(Webcache)
    def check(it: Webcache, review: Review[Webcache]) -> Any:
        return False

    with pytest.raises(ReviewError, match=r"expected check to return None, got bool; call review.deny"):
        await check.verdict(webcache())


async def test_review_reads_cached_objects(operator: Operator) -> None:
    """`review.get` and `review.list` find the objects of the kinds in `reads=`, by default in the request's namespace."""

    @operator.validate(Webcache, reads=(ConfigMap,))
    def check(it: Webcache, review: Review[Webcache]) -> None:
        found = review.get(ConfigMap, "settings")
        review.warn(f"{found and found.name} {[each.name for each in review.list(ConfigMap)]}")
        review.warn(
            f"{len(review.list(ConfigMap, namespace='other', labels={'a': 'b'}))} {review.get(ConfigMap, 'no')}"
        )

    existing = [
        ConfigMap(name="settings", namespace="default"),
        ConfigMap(name="settings", namespace="other", labels={"a": "b"}),
    ]
    verdict = await check.verdict(webcache(), existing=existing)
    assert verdict.warnings == ("settings ['settings']", "1 None")


async def test_review_fetches_what_is_not_cached(operator: Operator) -> None:
    """`review.fetch` reads an object of any kind; a test names those that exist."""

    @operator.validate(Webcache)
    async def check(it: Webcache, review: Review[Webcache]) -> None:
        if await review.fetch(Secret, "key") is None:
            review.deny("no key")

    assert not (await check.verdict(webcache())).allowed
    assert not (await check.verdict(webcache(), existing=[Secret(name="key", namespace="other")])).allowed
    assert (await check.verdict(webcache(), existing=[Secret(name="key", namespace="default")])).allowed


async def test_warnings_and_annotations_come_with_the_verdict(operator: Operator) -> None:
    """Warnings are single lines; the key of an audit annotation has no prefix."""

    @operator.validate(Webcache)
    def check(it: Webcache, review: Review[Webcache]) -> None:
        review.warn("two\nlines")
        review.annotate("checked", f"{review.operation} by {review.user} in {review.dry_run}")
        with pytest.raises(InvalidValueError, match="without a prefix"):
            review.annotate("example.com/checked", "yes")

    verdict = await check.verdict(webcache(), user="jane", dry_run=True)
    assert verdict.warnings == ("two lines",)
    assert verdict.annotations == {"checked": "CREATE by jane in True"}
