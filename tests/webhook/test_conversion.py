"""Conversion between versions: what users' functions do, what is kept, and what is refused."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from example_counts import examples
from navarch import Resource, Spec, Status
from navarch.api.json_patch import copy_json
from navarch.errors import ConversionError, DefinitionError
from navarch.webhook.conversion import DeclaredConversion, VersionGraph, declare_conversion
from navarch.webhook.kept_fields import KEPT_FIELDS, fingerprint
from webhook.versioned_kinds import GROUP, AlphaCache, AlphaSpec, BetaCache, Cache, CacheSpec, manifest, pairs

Json = dict[str, Any]
GRAPH = VersionGraph(pairs())


def convert(value: Json, version: str, graph: VersionGraph = GRAPH) -> Json:
    """Converts a copy."""
    return graph.convert(copy.deepcopy(value), version)  # type: ignore[no-any-return]  # JSON


def kept_in(value: Json) -> Any:
    """The content of the annotation."""
    return json.loads(value["metadata"].get("annotations", {}).get(KEPT_FIELDS, "{}"))


def test_function_converts_the_body_and_metadata_is_carried_over() -> None:
    """Metadata stays as it is, also fields that no class knows; an object without a status gets none."""
    old = manifest("v1alpha1", spec={"count": 3, "retain": False, "servers": []})
    new = convert(old, "v1")
    assert new["apiVersion"] == f"{GROUP}/v1"
    assert new["spec"]["size"] == 3
    assert new["metadata"] == old["metadata"]
    assert "status" not in new


def test_object_in_the_desired_version_is_returned_as_it_is() -> None:
    """Nothing is decoded, so unknown fields and odd values stay."""
    value = manifest("v1", spec={"size": 1, "odd": [None]})
    assert GRAPH.convert(value, "v1") is value


def test_fields_that_a_version_cannot_hold_survive_the_way_back() -> None:
    """Fields, items of lists, unknown fields and the text of a quantity come back."""
    spec = {
        "size": 3,
        "policy": "Snapshot",
        "ports": [{"name": "a", "port": 1, "weight": 5}],
        "servers": [{"host": "x", "rack": "r1"}, {"host": "y"}],
        "memory": "1024Mi",
        "zone": "north",
        "tags": ["b", "a"],
        "ratio": 2,
        "preserved": {"by": ["the", "schema"]},
    }
    new = manifest("v1", spec=spec, status={"nodes": ["n"], "conditions": [], "phase": "Up"})
    old = convert(new, "v1alpha1")
    assert old["spec"] == {"count": 3, "retain": False, "servers": ["x", "y"]}
    assert list(kept_in(old)) == ["v1"]
    assert convert(old, "v1") == new


def test_versions_without_differences_leave_no_annotation() -> None:
    """A default that only the class fills in, 1 for 1.0 and the order of a set are no differences."""
    specs: list[Json] = [{}, {"size": 3, "ratio": 1}, {"tags": []}]
    for spec in specs:
        old = convert(manifest("v1", spec=spec), "v1alpha1")
        assert kept_in(old) == {}
        assert kept_in(convert(old, "v1")) == {}


def test_users_change_wins_over_what_was_kept_of_that_part_alone() -> None:
    """A changed field is not overwritten, and all other kept fields come back."""
    new = manifest(
        "v1", spec={"size": 3, "policy": "Snapshot", "zone": "north", "servers": [{"host": "x", "rack": "r"}]}
    )
    old = convert(new, "v1alpha1")
    old["spec"] |= {"retain": True, "count": 4}
    again = convert(old, "v1")
    assert again["spec"] == {
        "size": 4,
        "policy": "Retain",
        "zone": "north",
        "servers": [{"host": "x", "rack": "r"}],
        "ports": [],
        "tags": [],
        "ratio": 1.0,
    }
    assert kept_in(again) == {}


@pytest.mark.parametrize(
    ("servers", "racks"),
    [
        (["x", "y", "z"], ["r1", "r2", None]),
        (["new", "x", "y", "z"], [None, "r1", "r2", None]),
        (["y", "z"], ["r2", None]),
        (["x", "changed", "z"], ["r1", "r2", None]),
        (["z", "y", "x"], [None, "r2", "r1"]),
        ([], []),
    ],
)
def test_items_of_lists_without_keys_are_recognized_after_they_moved(servers: list[str], racks: list[str]) -> None:
    """Equal items match first, then those at the same index."""
    hosts = [{"host": "x", "rack": "r1"}, {"host": "y", "rack": "r2"}, {"host": "z"}]
    old = convert(manifest("v1", spec={"servers": hosts}), "v1alpha1")
    old["spec"]["servers"] = servers
    found = convert(old, "v1")["spec"]["servers"]
    assert found == [
        {"host": host} | ({"rack": rack} if rack else {}) for host, rack in zip(servers, racks, strict=True)
    ]


def test_items_of_map_lists_are_matched_by_their_keys() -> None:
    """A kept field follows its item; that of a removed item is dropped."""
    ports = [{"name": "a", "port": 1, "weight": 5}, {"name": "b", "port": 2, "weight": 6}, {"name": "c", "port": 3}]
    old = convert(manifest("v1", spec={"ports": ports}), "v1beta1")
    old["spec"]["ports"] = [{"name": "c", "port": 3}, {"name": "b", "port": 9}, {"name": "d", "port": 4}]
    assert convert(old, "v1")["spec"]["ports"] == [
        {"name": "c", "port": 3},
        {"name": "b", "port": 9, "weight": 6},
        {"name": "d", "port": 4},
    ]


def test_hub_keeps_what_only_another_version_can_hold() -> None:
    """A field of the old version survives in the stored version, and a write in a third version."""
    old = manifest("v1alpha1", spec={"count": 1, "retain": True, "servers": [], "motto": "steady"})
    stored = convert(old, "v1")
    assert kept_in(stored) == {"v1alpha1": [{"path": ["spec", "motto"], "value": "steady"}]}
    third = convert(stored, "v1beta1")
    third["spec"]["size"] = 7
    back = convert(third, "v1alpha1")
    assert back["spec"] == {"count": 7, "retain": True, "servers": [], "motto": "steady"}
    assert list(kept_in(back)) == []


def test_a_chain_of_pairs_connects_all_versions() -> None:
    """A kind that grew version by version needs no new pair for its oldest one."""
    declared: list[DeclaredConversion[Any, Any]] = []

    @declare_conversion(declared, AlphaCache, BetaCache)
    def first(old: AlphaCache) -> BetaCache:
        return BetaCache(spec=type(BetaCache().spec)(size=old.spec.count, motto=old.spec.motto))

    @first.reverse
    def first_back(new: BetaCache) -> AlphaCache:
        return AlphaCache(spec=AlphaSpec(count=new.spec.size, motto=new.spec.motto))

    declared.append(pairs()[1])
    graph = VersionGraph(declared)
    new = manifest("v1", spec={"size": 3, "zone": "north", "ports": [{"name": "a", "port": 1, "weight": 2}]})
    old = convert(new, "v1alpha1", graph)
    assert old["spec"]["count"] == 3
    assert sorted(kept_in(old)) == ["v1", "v1beta1"]
    back = convert(old, "v1", graph)
    assert {key: back["spec"][key] for key in new["spec"]} == new["spec"]
    assert kept_in(back) == {}


def test_functions_may_convert_labels_and_annotations() -> None:
    """Those that a function sets are added; one that it pops from the object that it was given is removed, and the
    others stay. The annotation of kept fields is hidden from it.
    """
    declared: list[DeclaredConversion[Any, Any]] = []

    @declare_conversion(declared, AlphaCache, Cache)
    def upgrade(old: AlphaCache) -> Cache:
        assert KEPT_FIELDS not in old.annotations
        zone = old.annotations.pop("example.com/zone", None)
        return Cache(labels={"grown": "yes"}, spec=CacheSpec(zone=zone))

    @upgrade.reverse
    def downgrade(new: Cache) -> AlphaCache:
        new.labels.pop("grown", None)
        zone = new.spec.zone
        return AlphaCache(annotations={"example.com/zone": zone} if zone else {}, spec=AlphaSpec())

    graph = VersionGraph(declared)
    old = manifest("v1alpha1", spec={"count": 3})
    old["metadata"]["annotations"] = {"example.com/zone": "north", "other": "x", KEPT_FIELDS: "{}"}
    new = convert(old, "v1", graph)
    assert new["spec"]["zone"] == "north"
    assert new["metadata"]["labels"] == {"app": "cache", "grown": "yes"}
    assert new["metadata"]["annotations"].keys() == {"other", KEPT_FIELDS}
    back = convert(new, "v1alpha1", graph)
    assert back["metadata"]["annotations"] == {"example.com/zone": "north", "other": "x"}
    assert (back["metadata"]["labels"], back["spec"]["count"]) == ({"app": "cache"}, 3)


def _one_way(function: Callable[[Any], Any]) -> VersionGraph:
    declared: list[DeclaredConversion[Any, Any]] = []
    declare_conversion(declared, AlphaCache, Cache)(function).reverse(lambda _: AlphaCache(spec=AlphaSpec()))
    return VersionGraph(declared)


def _renames(old: AlphaCache) -> Cache:
    old.metadata.name = "other"
    return Cache(metadata=old.metadata)


async def _coroutine() -> None: ...


@pytest.mark.parametrize(
    ("function", "cause"),
    [
        (_renames, "expected _renames to leave metadata.name as it is, got another one"),
        (lambda _: Cache(name="z"), "leave metadata.name as it is"),
        (lambda old: Cache(metadata=type(old.metadata)(uid="1")), "leave metadata.uid as it is"),
        (lambda _: None, "to return a Cache, got NoneType"),
        (lambda old: old, "to return a Cache, got AlphaCache"),
        (lambda _: _coroutine(), "to return a Cache, got coroutine"),
        (lambda old: Cache(spec=CacheSpec(size=1 // (old.spec.count - 1))), "raised ZeroDivisionError"),
        (lambda _: Cache(spec=CacheSpec(zone=object())), "returned expected a value that JSON can hold"),  # type: ignore[arg-type]  # a mistake
        (lambda _: Cache(spec=CacheSpec(zone=5)), "Expected `str | null`, got `int`"),  # type: ignore[arg-type]  # a mistake
    ],
)
def test_faults_of_functions_name_the_object_and_the_cause(function: Callable[[Any], Any], cause: str) -> None:
    """The error tells which object, which versions and what went wrong."""
    with pytest.raises(ConversionError) as caught:
        convert(manifest("v1alpha1", spec={"count": 1}), "v1", _one_way(function))
    assert "Cache default/c: cannot convert v1alpha1 to v1: " in str(caught.value)
    assert cause in str(caught.value)


def test_object_that_is_not_of_its_class_is_refused_with_its_field() -> None:
    """A stored object may be older than the class."""
    with pytest.raises(ConversionError, match=r"Cache default/c: cannot convert v1alpha1 to v1: .*\$\.spec\.count"):
        convert(manifest("v1alpha1", spec={"count": "many"}), "v1")


def test_too_many_bytes_of_kept_fields_are_refused() -> None:
    """The API server would refuse the annotations of such an object; the error says so before."""
    new = manifest("v1", spec={"zone": "n" * (256 * 1024)})
    with pytest.raises(
        ConversionError, match=r"at most 262144 bytes of annotations, got 2622.. with the fields that v1alpha1"
    ):
        convert(new, "v1alpha1")
    other = manifest("v1", spec={"zone": "north"})
    other["metadata"]["annotations"] = {"other": "o" * (256 * 1024 - 20)}
    with pytest.raises(ConversionError, match="give AlphaCache a field for them, or read the object as v1"):
        convert(other, "v1alpha1")


@pytest.mark.parametrize(
    "text",
    ["", "null", "[]", "{", '{"v1": 1}', '{"v1": [{"path": 1}]}', '{"v1": [{"path": ["spec", "size"], "value": "x"}]}'],
)
def test_annotation_that_somebody_broke_hides_no_object(text: str) -> None:
    """An error would make all lists fail because of one object; the broken annotation is dropped."""
    old = manifest("v1alpha1", spec={"count": 4})
    old["metadata"]["annotations"] = {KEPT_FIELDS: text}
    new = convert(old, "v1")
    assert new["spec"]["size"] == 4
    assert kept_in(new) == {}


@pytest.mark.parametrize(
    "path",
    [
        ["metadata", "name"],
        ["metadata", "finalizers"],
        ["metadata", "labels"],
        ["metadata"],
        ["apiVersion"],
        ["kind"],
        [],
    ],
)
def test_annotation_cannot_change_the_identity_of_an_object(path: list[str]) -> None:
    """Only what functions convert is restored, and only what the class can decode."""
    old = manifest("v1alpha1", spec={"count": 4})
    found: Any = convert(old, "v1")
    for step in path:
        found = found.get(step) if isinstance(found, dict) else None
    forged = {"path": path, "replaces": fingerprint(found)}
    for field in (forged, forged | {"value": "x"}, {"path": path, "value": "x"}):
        old["metadata"]["annotations"] = {KEPT_FIELDS: json.dumps({"v1": [field]})}
        new = convert(old, "v1")
        assert (new["metadata"]["name"], new["apiVersion"], new["kind"]) == ("c", f"{GROUP}/v1", "Cache")
        assert "finalizers" not in new["metadata"]
        assert new["metadata"].get("labels", {}) in ({}, {"app": "cache"})


def test_entry_of_an_unknown_version_is_kept() -> None:
    """A newer replica may know it."""
    old = manifest("v1alpha1", spec={"count": 4})
    entry = {"v9": [{"path": ["spec", "future"], "value": 1}]}
    old["metadata"]["annotations"] = {KEPT_FIELDS: json.dumps(entry)}
    assert kept_in(convert(convert(old, "v1"), "v1beta1"))["v9"] == entry["v9"]


def test_unknown_versions_point_to_the_rolling_update() -> None:
    """An older replica does not guess."""
    with pytest.raises(
        ConversionError, match=r"Cache default/c: this replica of the operator does not know .*/v2, only"
    ):
        convert(manifest("v1"), "v2")
    with pytest.raises(ConversionError, match=r"does not know cache\.example\.com/v3"):
        convert(manifest("v3"), "v1")


# Declarations


class Other(Resource[Spec, Status], group=GROUP, version="v1"): ...


class SecondAlpha(Resource[Spec, Status], group=GROUP, version="v1alpha1", kind="Cache", storage=False): ...


async def _late(old: AlphaCache) -> Cache:
    return Cache(name=old.name)


_declare: Any = declare_conversion  # mistakes that a type checker would find
_pair: Any = DeclaredConversion


@pytest.mark.parametrize(
    ("declare", "cause"),
    [
        (lambda: _declare([], _renames, Cache), "got the function _renames; write @operator.convert"),
        (lambda: _declare([], AlphaCache, Other), "expected two versions of one kind"),
        (lambda: _declare([], AlphaCache, SecondAlpha), "expected two versions, got v1alpha1 twice"),
        (lambda: _declare([], AlphaCache, str), "expected a class with group= and version="),
        (lambda: _declare([], AlphaCache, Cache)(_late), "got the coroutine _late; write def without async"),
        (lambda: _declare([], AlphaCache, Cache)(lambda: None), "expected a function that takes a AlphaCache"),
        (lambda: pairs()[0].reverse(_renames), "expected one reverse function, got downgrade and _renames"),
        (lambda: _declare(pairs(), Cache, AlphaCache)(_renames), "expected one way between Cache and AlphaCache"),
        (
            lambda: _declare(pairs(), AlphaCache, BetaCache)(_renames),
            "expected one way between AlphaCache and BetaCache",
        ),
        (lambda: VersionGraph(pairs()[:1], [BetaCache]), "got none between v1beta1 and the stored version v1"),
        (lambda: VersionGraph(pairs(), [SecondAlpha]), "expected one class of version v1alpha1"),
        (lambda: VersionGraph([_pair(AlphaCache, Cache, _renames)]), "write @_renames.reverse above"),
        (lambda: VersionGraph([_pair(AlphaCache, BetaCache, _renames)]), "exactly one stored version, got none"),
    ],
)
def test_mistakes_are_refused_with_a_remedy(declare: Callable[[], object], cause: str) -> None:
    """At the declaration where possible, at the latest when the operator starts."""
    with pytest.raises(DefinitionError) as caught:
        declare()
    assert cause in str(caught.value)


def test_declared_conversions_are_called_like_their_functions() -> None:
    """A unit test needs no cluster."""
    upgrade = pairs()[0]
    assert upgrade(AlphaCache(spec=AlphaSpec(count=3))).spec.size == 3


# For all objects

_TEXT = st.sampled_from(["", "a", "b", "ü"])
_SPECS = {
    "v1alpha1": st.fixed_dictionaries(
        {},
        optional={
            "count": st.integers(0, 3),
            "retain": st.booleans(),
            "servers": st.lists(_TEXT, max_size=3),
            "motto": _TEXT,
            "extra": st.none() | st.dictionaries(_TEXT, st.integers(0, 2), max_size=2),
        },
    ),
    "v1beta1": st.fixed_dictionaries(
        {},
        optional={
            "size": st.integers(0, 3),
            "policy": _TEXT,
            "motto": _TEXT,
            "ports": st.lists(
                st.fixed_dictionaries({"name": _TEXT}, optional={"port": st.integers(0, 2), "extra": _TEXT}),
                max_size=3,
                unique_by=lambda port: port["name"],
            ),
        },
    ),
    "v1": st.fixed_dictionaries(
        {},
        optional={
            "size": st.integers(0, 3),
            "policy": st.sampled_from(["Retain", "Delete", "Snapshot"]),
            "memory": st.sampled_from(["1", "1000m", "1Gi"]),
            "zone": _TEXT,
            "ratio": st.sampled_from([1, 1.0, 2.5]),
            "tags": st.just([]) | st.just(["a", "b"]),
            "servers": st.lists(st.fixed_dictionaries({"host": _TEXT}, optional={"rack": _TEXT}), max_size=3),
            "ports": st.lists(
                st.fixed_dictionaries(
                    {"name": _TEXT}, optional={"port": st.integers(0, 2), "weight": st.integers(0, 2)}
                ),
                max_size=3,
                unique_by=lambda port: port["name"],
            ),
        },
    ),
}
_OBJECTS = st.sampled_from(sorted(_SPECS)).flatmap(
    lambda version: _SPECS[version].map(lambda spec: manifest(version, spec=spec))
)
_WAYS = st.lists(st.sampled_from(sorted(_SPECS)), max_size=6)


@examples(300)
@given(_OBJECTS, _WAYS)
def test_no_way_through_the_versions_loses_a_field(value: Json, way: list[str]) -> None:
    """Whatever versions an object passes, it comes back with all that it had, and with nothing but defaults added."""
    version = value["apiVersion"].rpartition("/")[2]
    found = copy_json(value)
    for target in [*way, version]:
        found = convert(found, target)
    assert kept_in(found) == {}
    del found["metadata"]["annotations" if "annotations" in found["metadata"] else "unheardOf"]
    _assert_holds(found["spec"], value["spec"])


def _assert_holds(found: Any, expected: Any) -> None:
    """Defaults may be added; everything else is equal."""
    if isinstance(expected, dict):
        assert expected.keys() <= found.keys()
        for key, value in expected.items():
            _assert_holds(found[key], value)
    elif isinstance(expected, list):
        assert len(found) == len(expected)
        for item, other in zip(found, expected, strict=True):
            _assert_holds(item, other)
    else:
        assert found == expected
        assert isinstance(found, bool) is isinstance(expected, bool)


@examples(200)
@given(_OBJECTS, _WAYS)
def test_repeated_conversions_are_stable(value: Json, way: list[str]) -> None:
    """The second round gives exactly the objects of the first: the annotation does not grow."""
    found = value
    for target in [*way, "v1"]:
        found = convert(found, target)
    for version in ("v1alpha1", "v1beta1"):
        first = convert(found, version)
        again = convert(convert(first, "v1"), version)
        assert again == first
        assert convert(convert(again, "v1"), version) == first
