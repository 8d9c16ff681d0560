"""Objects and patches that make no sense: an answer, never a crash."""

from __future__ import annotations

import contextlib
import sys
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.fields.replay import MEDIA_TYPES, Json, resource, shape
from navarch.cluster.server.objects import fields
from navarch.cluster.server.wire.status_errors import StatusError

_WORDS = """
    spec metadata name labels items ports port set managedFields $patch template containers finalizers
    $setElementOrder/containers $retainKeys struct free status data
"""
_NAMES = st.sampled_from(_WORDS.split())
_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 2) | st.floats(0, 2) | st.sampled_from(["a", "delete", "TCP", ""]),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(_NAMES, below, max_size=4),
    max_leaves=15,
)
_OBJECTS = st.dictionaries(_NAMES, _VALUES, max_size=4)
_PLURALS = st.sampled_from(["widgets", "podtemplates", "configmaps"])


def _whole(plural: str, value: Json) -> Json:
    kind = shape(plural, "v1")
    meta = value.get("metadata") if isinstance(value.get("metadata"), dict) else {}
    return {**value, "apiVersion": kind.api_version, "kind": kind.kind, "metadata": {**(meta or {}), "name": "x"}}


@given(_PLURALS, _OBJECTS, _OBJECTS)
def test_any_two_objects_have_an_answer_who_owns_what(plural: str, old: Json, new: Json) -> None:
    """Managed fields by clients included."""
    kind = shape(plural, "v1")
    live = _whole(plural, old)
    live["metadata"].pop("managedFields", None)
    owned = {"manager": "a", "api_version": kind.api_version, "now": "2020-01-01T00:00:00Z"}
    live["metadata"]["managedFields"] = fields.updated(None, live, kind, **owned)
    assert isinstance(fields.updated(live, _whole(plural, new), kind, **owned), list)


@given(_PLURALS, _OBJECTS, _OBJECTS, st.booleans())
def test_any_object_may_be_applied_to_any_other(plural: str, old: Json, patch: Json, force: bool) -> None:
    """It is merged or refused, and the live object stays as it is."""
    kind = shape(plural, "v1")
    live = _whole(plural, old)
    live["metadata"].pop("managedFields", None)
    before = msgspec.json.encode(live)
    more: Json = {"manager": "a", "force": force, "api_version": kind.api_version, "now": "2020-01-01T00:00:00Z"}
    with contextlib.suppress(StatusError):
        fields.applied(live, _whole(plural, patch), kind, **more)
    assert msgspec.json.encode(live) == before


@given(_PLURALS, _OBJECTS, _VALUES | _OBJECTS, st.sampled_from(["json", "merge", "strategic"]))
def test_any_patch_of_any_object_has_an_answer(plural: str, live: Json, patch: Any, kind: str) -> None:
    """An object or a refusal."""
    with contextlib.suppress(StatusError):
        body = msgspec.json.encode(patch)
        assert isinstance(fields.patched(_whole(plural, live), body, MEDIA_TYPES[kind], resource(plural, "v1")), dict)


def test_depth_is_refused_and_no_crash() -> None:
    """An object that is nested as deep as a reader can bear is refused, or owned by nobody."""
    deep: Any = 1
    for _ in range(sys.getrecursionlimit() - 100):  # other tests may have changed it
        deep = {"a": deep}
    kind = shape("widgets", "v1")
    value = {**_whole("widgets", {}), "spec": {"free": deep}}
    assert isinstance(fields.updated(None, value, kind, manager="a", api_version=kind.api_version, now="n"), list)
    with pytest.raises(StatusError, match="depth"):
        fields.applied(None, value, kind, manager="a", force=False, api_version=kind.api_version, now="n")
