"""ConversionReviews: mixed lists, faults in Kubernetes' form, malformed reviews."""

from __future__ import annotations

import json
from typing import Any

import pytest

from navarch.errors import DecodeError
from navarch.webhook.conversion_review import Conversions
from webhook.versioned_kinds import GROUP, BetaCache, manifest, pairs

Json = dict[str, Any]
CONVERSIONS = Conversions(pairs(), [BetaCache])


def review(*objects: Any, desired: str = f"{GROUP}/v1", **changes: Any) -> bytes:
    """A review as kube-apiserver sends it, with null where it has nothing to say."""
    request = {"uid": "705ab4f5", "desiredAPIVersion": desired, "objects": list(objects)} | changes
    answer: Json = {"uid": "", "convertedObjects": None, "result": {"metadata": {}}}
    envelope = {"kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1", "request": request}
    return json.dumps(envelope | {"response": answer}).encode()


def response(body: bytes) -> Json:
    """The response of an answer."""
    answer = json.loads(CONVERSIONS.answer(body))
    assert (answer["apiVersion"], answer["kind"]) == ("apiextensions.k8s.io/v1", "ConversionReview")
    found: Json = answer["response"]
    assert found["uid"] == "705ab4f5"
    return found


def test_objects_of_all_versions_are_converted_in_order() -> None:
    """Those that have the desired version already pass unchanged, whatever they hold."""
    odd = manifest("v1", spec={"size": "no number", "unknown": None})
    found = response(
        review(
            manifest("v1alpha1", spec={"count": 2}), odd, manifest("v1beta1", spec={"size": 5}), manifest("v1alpha1")
        )
    )
    assert found["result"] == {"status": "Success"}
    first, second, third, fourth = found["convertedObjects"]
    assert [each["apiVersion"] for each in found["convertedObjects"]] == [f"{GROUP}/v1"] * 4
    assert (first["spec"]["size"], third["spec"]["size"], fourth["metadata"]) == (2, 5, manifest()["metadata"])
    assert second == odd


def test_empty_review_succeeds() -> None:
    """The API server sends no empty review, but answering one is harmless."""
    assert response(review()) == {"uid": "705ab4f5", "result": {"status": "Success"}, "convertedObjects": []}


@pytest.mark.parametrize(
    ("value", "desired", "cause"),
    [
        (manifest("v1alpha1", spec={"count": "x"}), "v1", "Cache default/c: cannot convert v1alpha1 to v1: "),
        (
            manifest("v1alpha1"),
            "v2",
            f"this replica of the operator does not know {GROUP}/v2, only v1alpha1, v1, v1beta1",
        ),
        (manifest("v7"), "v1", f"this replica of the operator does not know {GROUP}/v7"),
        (manifest("v1alpha1") | {"kind": "Zonk"}, "v1", "does not convert Zonk"),
        (manifest("v1alpha1") | {"metadata": None}, "v1", "expected an object with metadata"),
        (manifest("v1alpha1") | {"apiVersion": "other.example.com/v1"}, "v1", "does not know other.example.com/v1"),
        (7, "v1", "expected objects to convert"),
        ({"kind": "Cache"}, "v1", "expected objects to convert"),
    ],
)
def test_one_failing_object_fails_the_review_with_its_name_and_the_cause(value: Any, desired: str, cause: str) -> None:
    """The API server shows this message to the user."""
    found = response(review(manifest("v1beta1"), value, desired=f"{GROUP}/{desired}"))
    assert found["result"]["status"] == "Failure"
    assert cause in found["result"]["message"]
    assert found["convertedObjects"] == []


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"\xff",
        b'{"kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1"}',
        review(uid=""),
        review(uid=None),
        review(objects=None),
        review(objects={}),
        review().replace(b"apiextensions.k8s.io/v1", b"apiextensions.k8s.io/v1beta1"),
        review().replace(b"ConversionReview", b"AdmissionReview"),
        b"[" * 100_000,
    ],
)
def test_malformed_reviews_are_refused(body: bytes) -> None:
    """Without a uid there is nothing to answer to."""
    with pytest.raises(DecodeError, match="expected a ConversionReview"):
        CONVERSIONS.answer(body)


def test_kinds_without_conversions_are_left_out() -> None:
    """Classes that no conversion is declared for are not versions of anything."""
    assert not Conversions([], [BetaCache])
    assert CONVERSIONS.graph(BetaCache.__kind__) is not None
