"""An object as the cache keeps it."""

import json

import pytest

from navarch.cache import entry_of, only_status_differs

OWNED = [{"manager": "me", "fieldsV1": {"f:spec": {}}}]


def _bytes(**metadata: object) -> bytes:
    found = {"metadata": {"name": "one", "resourceVersion": "7"} | metadata, "spec": {"size": 1}}
    return json.dumps(found, separators=(",", ":")).encode()


@pytest.mark.parametrize(
    "metadata",
    [{"managedFields": OWNED}, {"managedFields": OWNED, "uid": "u"}, {"managedFields": []}],
    ids=["last", "in the middle", "empty"],
)
def test_managed_fields_are_not_kept(metadata: dict[str, object]) -> None:
    """Nothing else changes, byte by byte."""
    rest = {name: value for name, value in metadata.items() if name != "managedFields"}
    assert entry_of(_bytes(**metadata)).data == _bytes(**rest)


def test_managed_fields_that_are_the_only_metadata_are_cut_out() -> None:
    """There is no comma to take with them."""
    assert entry_of(b'{"metadata":{"managedFields":[{}]}}').data == b'{"metadata":{}}'


@pytest.mark.parametrize("inner", [OWNED, [], {"other": True}], ids=["the same", "empty", "something else"])
def test_managed_fields_of_an_object_inside_are_kept(inner: object) -> None:
    """A template may have such a field too, before the object's own or behind it."""
    found = {"metadata": {"name": "one", "managedFields": OWNED}}
    template = {"template": {"metadata": {"managedFields": inner}}}
    for whole in ({**template, **found}, {**found, **template}):
        kept = json.loads(entry_of(json.dumps(whole, separators=(",", ":")).encode()).data)
        assert kept == {**template, "metadata": {"name": "one"}}


def test_managed_fields_are_not_kept_of_json_with_spaces() -> None:
    """Only Kubernetes writes none; a proxy may."""
    kept = entry_of(json.dumps({"metadata": {"name": "one", "managedFields": OWNED}}, indent=1).encode()).data
    assert json.loads(kept) == {"metadata": {"name": "one"}}


def test_text_that_looks_like_managed_fields_is_kept() -> None:
    """What `kubectl apply` keeps in an annotation is the JSON of the object."""
    annotations = {"last-applied": json.dumps({"metadata": {"managedFields": OWNED}}, separators=(",", ":"))}
    found = entry_of(_bytes(annotations=annotations, managedFields=OWNED))
    assert found.data == _bytes(annotations=annotations)


def test_uid_is_that_of_the_object() -> None:
    """And empty where there is none, as of an object that was never stored."""
    assert entry_of(_bytes(uid="8c1f", managedFields=OWNED)).uid == "8c1f"
    assert entry_of(_bytes()).uid == ""
    assert entry_of(b"{}").uid == ""


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({"resourceVersion": "8"}, True),
        ({"resourceVersion": "8", "uid": "other"}, False),
        ({"resourceVersion": "8", "generation": 3}, False),
        ({"resourceVersion": "8", "labels": {"a": "b"}}, False),
        ({"resourceVersion": "8", "deletionTimestamp": "2030-01-01T00:00:00Z"}, False),
    ],
    ids=["nothing else", "another object", "a new spec", "a label", "its deletion"],
)
def test_only_the_status_differs_where_nothing_else_was_asked_for(metadata: dict[str, object], expected: bool) -> None:
    """Of one object: one of the same name is new as a whole."""
    known: dict[str, object] = {"uid": "u", "generation": 2}
    assert only_status_differs(entry_of(_bytes(**known)), entry_of(_bytes(**known | metadata))) is expected
