"""Objects without a class."""

import json

from navarch.api import Dynamic


def test_shortcuts_read_what_is_there() -> None:
    """By the names that typed objects have."""
    found = Dynamic(
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "b", "labels": {"c": "d"}}}
    )
    assert (found.api_version, found.kind, found.name, found.namespace, found.labels) == (
        "v1",
        "Pod",
        "a",
        "b",
        {"c": "d"},
    )


def test_shortcuts_of_an_empty_object_are_empty() -> None:
    """Also where null stands."""
    for empty in (Dynamic(), Dynamic({"metadata": {"name": None, "namespace": None}})):
        assert (empty.api_version, empty.kind, empty.name, empty.namespace) == ("", "", "", "")


def test_labels_and_annotations_can_be_written() -> None:
    """They are made where there are none, null or not."""
    for found in (Dynamic(), Dynamic({"metadata": None}), Dynamic({"metadata": {"labels": None, "annotations": None}})):
        found.labels["a"] = "b"
        found.annotations["c"] = "d"
        assert found == {"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}}


def test_looking_changes_nothing() -> None:
    """An object that was only looked at is written as it was."""
    found = Dynamic({"kind": "Pod"})
    assert (found.name, found.namespace, found.kind) == ("", "", "Pod")
    assert json.dumps(found) == '{"kind": "Pod"}'
