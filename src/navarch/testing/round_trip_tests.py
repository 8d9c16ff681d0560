"""`round_trips`: property tests of an operator's conversions, in one line.

test_conversions = round_trips(operator)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import pytest

from navarch.api.json_patch import Json, copy_json
from navarch.errors import ConversionError, DefinitionError
from navarch.operator import Operator
from navarch.operator.conversions import conversions_of
from navarch.schema import Schema, crd
from navarch.webhook.conversion import Version, VersionGraph

try:
    from hypothesis import HealthCheck, given, settings

    from navarch.testing.schema_values import valid_values
except ModuleNotFoundError as missing:
    raise ImportError(
        f"navarch.testing.round_trips needs {missing.name}, which is not installed: pip install hypothesis"
    ) from missing

_METADATA = {
    "name": "drawn",
    "namespace": "default",
    "uid": "9c5f6f0e-6d8b-4f53-a7b3-6c1a2f0e8d11",
    "generation": 2,
    "creationTimestamp": "2026-01-02T03:04:05Z",
    "labels": {"drawn": "yes"},
    "annotations": {"example.com/drawn": "yes"},
    "finalizers": ["example.com/drawn"],
}


@dataclass(frozen=True, slots=True)
class RoundTrip:
    """The conversion from one version to another and back."""

    graph: VersionGraph
    source: Version
    target: Version
    schema: Schema | None
    """That of the target, if it must accept the converted objects."""

    def __str__(self) -> str:
        one, other = self.source.__kind__, self.target.__kind__
        return f"{one.kind} {one.version} to {other.version}"

    def check(self, value: Json) -> None:
        """Raises `AssertionError` if an object of the source version does not survive the way there and back, or if the
        target version refuses it.
        """
        there = self._converted(value, self.target)
        if self.schema is not None:
            self._refuse_invalid(there, self.schema)
        back = self._converted(there, self.source)
        lost = [path for path in _missing(value, back, "") if not path.startswith("metadata.annotations.navarch")]
        assert not lost, f"{self} and back: expected every field of the object, but these changed: {', '.join(lost)}"
        again = self._converted(back, self.target)
        assert again == there, f"{self}, back and there again: expected the same object, got another one"

    def _converted(self, value: Json, version: Version) -> Json:
        try:
            return self.graph.convert(copy_json(value), version.__kind__.version)
        except ConversionError as error:
            raise AssertionError(f"{self}: {error}") from error

    def _refuse_invalid(self, there: Json, schema: Schema) -> None:
        admitted = copy_json(there)
        schema.admit(admitted)
        causes = schema.validate(admitted)
        assert not causes, (
            f"{self}: expected an object that {self.target.__kind__.version} accepts, but its schema refuses: "
            f"{'; '.join(map(str, causes))}. The object could not be updated in this version; convert such values, loosen the "
            f"schema, or accept this: round_trips(operator, check_schema=False)"
        )


def round_trips(operator: Operator, *, examples: int = 100, check_schema: bool = True) -> Callable[..., None]:
    """Returns a test for every pair of versions that the operator converts between; give it a name that begins with `test`.

    Each test draws `examples` objects from the schema of one version, converts them to the other version and back, and
    demands that no function raises, no field is lost, and the result does not depend on how often an object is converted.
    With `check_schema` the other version's schema must accept every converted object. Raises `DefinitionError` for an
    operator without conversions.
    """
    graphs = conversions_of(operator).graphs.values()
    if not graphs:
        raise DefinitionError(
            f"operator {operator.name}: expected conversions, got none; declare @operator.convert(...)"
        )
    schemas = {version: schema for graph in graphs for version, schema in _schemas(graph).items()}
    cases = [
        RoundTrip(graph, source, target, Schema(schemas[target]) if check_schema else None)
        for graph in graphs
        for source, target in permutations(graph.versions, 2)
    ]

    @pytest.mark.parametrize("case", cases, ids=str)
    def test(case: RoundTrip) -> None:
        @settings(
            max_examples=examples,
            deadline=None,
            report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck),
        )
        @given(drawn_objects(case.source, schemas[case.source]))
        def survives(value: Json) -> None:
            case.check(value)

        survives()

    test.__doc__ = "Objects survive the conversion to another version and back."
    return test


def _schemas(graph: VersionGraph) -> dict[Version, Json]:
    manifest = crd(*graph.versions, description_limit=0)
    return {graph.classes[entry["name"]]: entry["schema"]["openAPIV3Schema"] for entry in manifest["spec"]["versions"]}


def drawn_objects(version: Version, schema: Json) -> Any:
    """Returns a hypothesis strategy for valid objects of a class and its schema, as JSON."""
    body = {
        name: inner for name, inner in schema["properties"].items() if name not in {"apiVersion", "kind", "metadata"}
    }
    kind = version.__kind__
    metadata = {name: value for name, value in _METADATA.items() if name != "namespace" or kind.namespaced}
    fixed = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata}
    return valid_values({**schema, "properties": body}).map(lambda drawn: {**copy_json(fixed), **drawn})


def _missing(expected: Json, found: Json, path: str) -> list[str]:
    """Returns the paths at which a value is lost or changed; members that were added, such as defaults, do not count."""
    if isinstance(expected, dict) and isinstance(found, dict):
        lost = []
        for name, value in expected.items():
            place = f"{path}.{name}".lstrip(".")
            lost += _missing(value, found[name], place) if name in found else [place]
        return lost
    if isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        pairs = enumerate(zip(expected, found, strict=True))
        return [place for index, (one, other) in pairs for place in _missing(one, other, f"{path}[{index}]")]
    return [] if expected == found and isinstance(expected, bool) is isinstance(found, bool) else [path]
