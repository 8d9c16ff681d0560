"""Generated input: any structural schema comes back from its classes, and no malformed CRD ends in a traceback."""

from __future__ import annotations

import contextlib
import copy
import itertools
import tempfile
import warnings
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from example_counts import examples
from navarch.errors import ConfigError
from navarch.project.models import kinds_in, model_files, write_models
from navarch.schema.generation.annotations import QUANTITY_PATTERN
from project.models.sameness import differences, imported
from project.models.test_golden import GOLDEN, crds

Json = dict[str, Any]

NAMES = st.one_of(
    st.sampled_from(
        ["from", "int", "list", "name", "metadata", "kind", "spec", "rules", "rule", "Meta", "model", "x-y"]
    ),
    st.from_regex(r"[a-zA-Z][a-zA-Z0-9]{0,6}", fullmatch=True),
    st.from_regex(r"[$_0-9.-][a-zA-Z0-9_.-]{0,4}", fullmatch=True),
)
ANY_OF = {"anyOf": [{"type": "integer"}, {"type": "string"}]}
RULES = st.sampled_from([[{"rule": "true"}], [{"rule": "true", "message": "a \"b\" 'c'"}, {"rule": "1 < 2"}]])
numbers = itertools.count()


def having(required: Json, **optional: st.SearchStrategy[Any]) -> st.SearchStrategy[Json]:
    """Schemas with these keywords, and some of those."""
    keywords = {name.replace("__", "-"): strategy for name, strategy in optional.items()}
    return st.fixed_dictionaries({}, optional=keywords).map(lambda chosen: {**copy.deepcopy(required), **chosen})


COMMON: dict[str, Any] = {"title": st.text(max_size=3).filter(bool), "nullable": st.just(True)}
SCALARS = st.one_of(
    having(
        {"type": "string"},
        minLength=st.integers(0, 2),
        maxLength=st.integers(3, 9),
        pattern=st.sampled_from([r"^\w+$", "^[a'\"]*$", r"\\"]),
        format=st.sampled_from(["byte", "date-time", "date", "ipv4"]),
        enum=st.sampled_from([["abc"], ["abc", "d\\e"]]),
        **COMMON,
    ),
    having({"type": "string"}, default=st.text(max_size=6), x__kubernetes__validations=RULES),
    having(
        {"type": "integer"},
        format=st.sampled_from(["int32", "int64"]),
        minimum=st.integers(-9, 0),
        maximum=st.integers(5, 9),
        default=st.integers(1, 4),
        **COMMON,
    ),
    having({"type": "integer", "minimum": 0, "exclusiveMinimum": True}, multipleOf=st.just(3)),
    having({"type": "number"}, format=st.sampled_from(["double", "float"]), maximum=st.sampled_from([0.5, 3, 2.5e9])),
    having({"type": "boolean"}, default=st.just(True), enum=st.just([True]), example=st.booleans()),
    having(
        {"x-kubernetes-int-or-string": True}, maxLength=st.just(3), pattern=st.sampled_from(["^1$", QUANTITY_PATTERN])
    ),
    having({"x-kubernetes-int-or-string": True, **ANY_OF}, pattern=st.just(QUANTITY_PATTERN)),
    having({"x-kubernetes-preserve-unknown-fields": True}, **COMMON),
    having({"type": "object", "x-kubernetes-preserve-unknown-fields": True}, maxProperties=st.just(3)),
    having({"type": "object", "x-kubernetes-preserve-unknown-fields": True, "x-kubernetes-embedded-resource": True}),
)


def compound(inner: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    """Lists, maps and structs of schemas."""
    return st.one_of(
        st.tuples(
            having(
                {"type": "array"},
                maxItems=st.integers(0, 9),
                x__kubernetes__list__type=st.just("atomic"),
                default=st.just([]),
                **COMMON,
            ),
            inner,
        ).map(lambda pair: {**pair[0], "items": pair[1]}),
        st.tuples(having({"type": "object"}, minProperties=st.just(1), **COMMON), inner).map(
            lambda pair: {**pair[0], "additionalProperties": pair[1]}
        ),
        structs(inner),
    )


def structs(inner: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    """Objects with some properties, of which some are required."""
    return st.tuples(
        having(
            {"type": "object"},
            x__kubernetes__map__type=st.sampled_from(["atomic", "granular"]),
            x__kubernetes__preserve__unknown__fields=st.just(True),
            x__kubernetes__validations=RULES,
            description=st.text(max_size=9),
            **COMMON,
        ),
        st.dictionaries(NAMES, inner, min_size=1, max_size=5),
        st.integers(0, 5),
    ).map(lambda found: {**found[0], "properties": found[1], **_required(list(found[1])[: found[2]])})


def _required(names: list[str]) -> Json:
    return {"required": names} if names else {}


def manifest_with(schema: Json) -> Json:
    """A CRD whose spec has the schema."""
    root = {"type": "object", "properties": {"metadata": {"type": "object"}, "spec": schema}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": root}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"kind": "Thing", "plural": "things"},
            "scope": "Cluster",
            "versions": [version],
        },
    }


@examples(200, deadline=None)
@given(structs(st.recursive(SCALARS, compound, max_leaves=8)))
def test_any_schema_comes_back_from_its_classes(schema: Json) -> None:
    """Whatever keywords it combines, and whatever its fields are called."""
    manifest = manifest_with(schema)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of formats that the server does not know
        write_models(Path(folder), model_files(kinds_in([("", manifest)])))
        with imported(Path(folder), f"round_trip_{next(numbers)}") as models:
            assert differences(manifest, models.classes_of(manifest)) == []


def paths_of(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a JSON value."""
    below = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for key, inner in below for found in paths_of(inner, (*path, key)))]


SHOP: Json = copy.deepcopy(dict(crds(GOLDEN / "shop.yaml")[0]))
PLACES = [path for path in paths_of(SHOP) if path and path not in {("kind",), ("apiVersion",)}]


@examples(400, deadline=None)
@given(
    st.sampled_from(PLACES),
    st.sampled_from([None, "", "x", 3, -1.5, True, [], {}, [1], ["a"], {"a": 1}, {"type": "x"}]),
)
def test_a_malformed_crd_is_refused_or_still_gives_python(path: tuple[Any, ...], value: Any) -> None:
    """One value of the CRD is something else: a clear error, or modules that compile."""
    manifest = copy.deepcopy(SHOP)
    place: Any = manifest
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with contextlib.suppress(ConfigError):
        for name, text in model_files(kinds_in([("shop.yaml", manifest)])).items():
            compile(text, name, "exec")
