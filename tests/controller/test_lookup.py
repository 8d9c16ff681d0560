"""Looking things up in the cache: what is found, and what is said where nothing could be."""

from __future__ import annotations

import json

import pytest

from navarch.api import encode
from navarch.cache import Cached, Collection, entry_of
from navarch.controller import Lookup
from navarch.errors import InvalidValueError
from navarch.k8s.core.v1 import ConfigMap, Secret


def lookup_of(*found: ConfigMap) -> Lookup:
    """With an index of config maps by their colour."""
    cached = Cached(ConfigMap, indexes={"colour": lambda config: [(config.data or {}).get("colour", "none")]})
    collection = Collection(cached)
    for version, each in enumerate(found, 1):
        wire = json.loads(encode(each))
        wire["metadata"]["resourceVersion"] = str(version)
        collection.saw(entry_of(json.dumps(wire).encode()))
    return Lookup({collection.kind: collection})


def config(name: str, namespace: str = "default", colour: str = "red", **labels: str) -> ConfigMap:
    return ConfigMap(name=name, namespace=namespace, labels=labels, data={"colour": colour})


def test_objects_are_found_by_name_label_and_index() -> None:
    """In one namespace, or in all."""
    lookup = lookup_of(config("a", app="web"), config("b", "other", app="web"), config("c", colour="blue"))
    a = lookup.get(ConfigMap, "a", namespace="default")
    assert a is not None
    assert a.name == "a"
    assert lookup.get(ConfigMap, "a", namespace="other") is None
    assert {found.name for found in lookup.list(ConfigMap)} == {"a", "b", "c"}
    assert {found.name for found in lookup.list(ConfigMap, labels={"app": "web"})} == {"a", "b"}
    assert {found.name for found in lookup.list(ConfigMap, index=("colour", "red"))} == {"a", "b"}
    assert {found.name for found in lookup.list(ConfigMap, index=("colour", "red"), namespace="other")} == {"b"}


def test_kind_that_was_not_declared_is_refused_with_the_remedy() -> None:
    """It would have to be asked of the server, which a lookup does not."""
    with pytest.raises(InvalidValueError, match=r"expected a kind that is cached, got .*; declare it: reads=\(Secret"):
        lookup_of().list(Secret)


def test_index_that_was_not_declared_is_refused_with_the_remedy() -> None:
    """As it is by a context."""
    with pytest.raises(InvalidValueError, match=r"got 'size'; declare it: Cached\(ConfigMap, indexes="):
        lookup_of().list(ConfigMap, index=("size", "3"))
