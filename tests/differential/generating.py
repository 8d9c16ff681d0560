"""Random sequences of requests: mostly right, so that objects live, and now and then wrong."""

from __future__ import annotations

import copy
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from differential.builtin import BUILTIN
from differential.custom import CUSTOM
from differential.definitions import definition_steps
from differential.kinds import GONE, LONG, METADATA, Edits, Kind
from differential.operated import OPERATED
from differential.parts import part_steps
from differential.patching import patch_steps
from differential.steps import OWN, PATCHES, Json, Step

_META = "application/json;as={kind};g=meta.k8s.io;v=v1"
_FORMS = [_META.format(kind=kind) for kind in ("Table", "PartialObjectMetadata", "PartialObjectMetadataList")]
_MANAGERS = ("ann", "bob")
_SHAPES = ("create", "create", "update", "update", "json", "merge", "merge", "strategic", "apply", "apply", "apply")
_READS = ("get", "list", "list")
_OTHERS = ("delete", "delete", "deletecollection", "status", "scale")
_SPECIAL_EVERY = 20
_SPECIAL = {0: ("definitions", definition_steps), 13: ("patches", patch_steps), 19: ("parts", part_steps)}
_OPERATED_EVERY = 5
_COMMON = tuple(zip((*BUILTIN, *CUSTOM), (3, 2, 2, 2, 2, 1, 1, 1, 1, 8, 3), strict=True))
_RARE = tuple((kind, 1) for kind in OPERATED)
Query = list[tuple[str, str]]
Chosen = list[tuple[str, Any]]


@dataclass(frozen=True)
class _Target:
    """What a write is about."""

    kind: Kind
    version: str
    short: str
    subresource: str = ""

    @property
    def collection(self) -> str:
        return self.kind.collection(self.version)

    @property
    def path(self) -> str:
        return f"{self.collection}/{self.kind.name(self.short)}{self.subresource}"

    def head(self) -> Json:
        """What every object has."""
        metadata: Json = {"name": self.kind.name(self.short)}
        if not self.kind.namespaced:
            metadata["labels"] = {"sequence": "$ns"}
        return {"apiVersion": self.kind.api_version(self.version), "kind": self.kind.kind, "metadata": metadata}


def sequence(seed: int, index: int) -> list[Step]:
    """The steps of one sequence: the same for the same numbers.

    Of twenty, one is about definitions, one about parts of objects and watches, and one about patches; every fifth of
    the others is about the kinds that are seen less often.
    """
    if (special := _SPECIAL.get(index % _SPECIAL_EVERY)) is not None:
        name, steps = special
        return steps(random.Random(f"{seed}/{index}/{name}"))
    kinds = _COMMON if index % _OPERATED_EVERY else _RARE
    return _Sequence(random.Random(f"{seed}/{index}"), kinds).steps()


def kinds_of(steps: Sequence[Step]) -> list[Kind]:
    """The kinds that the steps are about."""
    kinds = (*BUILTIN, *CUSTOM, *OPERATED)
    return [kind for kind in kinds if any(f"/{kind.plural}" in step.path for step in steps)]


class _Sequence:
    def __init__(self, rng: random.Random, kinds: Sequence[tuple[Kind, int]]) -> None:
        self._rng = rng
        weights = [weight for _, weight in kinds]
        self._kinds = rng.choices([kind for kind, _ in kinds], weights, k=1 + (rng.random() < 0.2))

    def steps(self) -> list[Step]:
        first = self._kinds[0]
        opening = [self._written(first, self._pick(["create", "create", "apply"]), "a")]
        return opening + [self._step() for _ in range(self._rng.randint(3, 12))]

    def _pick(self, values: Sequence[Any]) -> Any:
        return self._rng.choice(values)

    def _chance(self, part: float) -> bool:
        return self._rng.random() < part

    def _step(self) -> Step:
        kind = self._pick(self._kinds)
        [verbs] = self._rng.choices([_SHAPES, _READS, _OTHERS], [6, 3, 3])
        verb, short = self._pick(verbs), self._pick(["a", "a", "a", "b"])
        match verb:
            case "get" | "list":
                return self._read(kind, verb, short)
            case "delete" | "deletecollection":
                return self._deletion(kind, verb, short)
            case "status" if kind.status:
                return self._status(kind, short)
            case "scale" if kind.scales:
                return self._scale(kind, short)
            case "status" | "scale":
                return self._read(kind, "get", short)
            case _:
                return self._written(kind, verb, short)

    def _written(self, kind: Kind, shape: str, short: str) -> Step:
        target, query, edits = self._target(kind, short), self._write_query(shape), self._edits(kind)
        match shape:
            case "create":
                return self._sent("POST", target.collection, query, self._object(target, edits))
            case "update":
                return self._sent("PUT", target.path, query, self._versioned(self._object(target, edits)))
            case _:
                return self._patch(target, shape, query, edits or self._chosen(kind.edits, 1))

    def _target(self, kind: Kind, short: str, subresource: str = "") -> _Target:
        return _Target(kind, self._pick(kind.versions), short, subresource)

    def _patch(self, target: _Target, shape: str, query: Query, edits: Chosen) -> Step:
        if shape == "json":
            return Step("PATCH", target.path, tuple(query), self._operations(edits), media_type=PATCHES[shape])
        if shape == "apply":
            body = self._object(target, edits) if self._chance(0.6) else _edited(target.head(), edits)
        else:
            places = [(where, None if value is GONE else value) for where, value in edits if ".0." not in where]
            body = _edited({}, places)
            body = self._versioned(body) if self._chance(0.2) else body
        return self._sent("PATCH", target.path, query, body, PATCHES[shape])

    def _versioned(self, body: Json) -> Json:
        """With the version that it is meant for, or none, or a wrong one."""
        metadata = body.setdefault("metadata", {})
        if isinstance(metadata, dict) and self._chance(0.5):
            metadata["resourceVersion"] = self._pick(["$rv", "$rv", "$rv", "$old", "", "x"])
        return body

    def _sent(self, method: str, path: str, query: Query, body: Any, media_type: str = "application/json") -> Step:
        step = Step(method, path, tuple(query), body, media_type=media_type, accept=self._accept())
        if self._chance(0.04):
            doubled = step.text.replace('"metadata": {', '"metadata": {"labels": {"d": "1"}, "labels": {"d": "2"}, ', 1)
            rubbish = self._pick([doubled, doubled, doubled, step.text[:-2], "[]", "null", "3", ""])
            return Step(method, path, tuple(query), raw=rubbish, media_type=media_type)
        return step

    def _accept(self) -> str:
        return self._pick(_FORMS[:2]) if self._chance(0.05) else "application/json"

    def _write_query(self, shape: str) -> Query:
        query: Query = []
        if shape == "apply" or self._chance(0.4):
            query.append(("fieldManager", self._pick(_MANAGERS)))
        if shape == "apply" and self._chance(0.4):
            query.append(("force", self._pick(["true", "false"])))
        if self._chance(0.12):
            query.append(("dryRun", self._pick(["All", "All", "All", "Some"])))
        if self._chance(0.35):
            query.append(("fieldValidation", self._pick(["Strict", "Strict", "Warn", "Ignore", "Odd"])))
        if self._chance(0.02):
            query.append(self._pick([("force", "true"), ("fieldManager", "x" * 129), ("fieldManager", "é\n")]))
        return query

    def _edits(self, kind: Kind) -> Chosen:
        count = self._pick([0, 1, 1, 1, 2, 3])
        common = self._chosen(METADATA, 1) if self._chance(0.3) else []
        return self._chosen(kind.edits, count) + common

    def _chosen(self, edits: Edits, count: int) -> Chosen:
        places = self._rng.sample(sorted(edits), min(count, len(edits)))
        return [(place, copy.deepcopy(self._value(edits[place]))) for place in sorted(places)]

    def _value(self, values: Sequence[Any]) -> Any:
        """Those that come first are the better ones."""
        return values[int(len(values) * self._rng.random() ** 1.5)]

    def _object(self, target: _Target, edits: Chosen) -> Json:
        body = _edited({**target.head(), **copy.deepcopy(target.kind.base)}, edits)
        return _edited(body, [self._pick(self._oddities(target.kind))]) if self._chance(0.06) else body

    def _oddities(self, kind: Kind) -> Chosen:
        names = ["", GONE, 1, *map(kind.name, ["A", "a_b", "a-", "a.b", LONG, "x" * 254, "$ns-b"])]
        kinds = [("kind", "ConfigMap"), ("kind", GONE), ("kind", "Nothing"), ("apiVersion", GONE), ("apiVersion", "v2")]
        prefix = kind.name("g-")
        generated = [{"generateName": prefix, "labels": {"sequence": "$ns"}}, {"generateName": "Bad_"}]
        return [*(("metadata.name", name) for name in names), *kinds, *(("metadata", each) for each in generated * 3)]

    def _operations(self, edits: Chosen) -> list[Json]:
        operations = [self._operation(where, value) for where, value in edits]
        return [each for each in operations if each] or [{"op": "test", "path": "/kind", "value": "x"}]

    def _operation(self, where: str, value: Any) -> Json:
        path = "/" + where.replace(".", "/")
        if value is GONE or self._chance(0.15):
            return {"op": "remove", "path": path}
        match self._pick(["add", "add", "add", "replace", "replace", "test", "copy", "move"]):
            case "copy" | "move" as operation:
                return {"op": operation, "from": path, "path": "/metadata/labels"}
            case operation:
                return {"op": operation, "path": path, "value": value}

    def _read(self, kind: Kind, verb: str, short: str) -> Step:
        path = kind.collection(self._pick(kind.versions))
        accept = self._pick(_FORMS) if self._chance(0.3) else "application/json"
        if verb == "get":
            query: tuple[tuple[str, str], ...] = ()
            if self._chance(0.2):
                query = (("resourceVersion", self._pick(["$rv", "$rv", "x"])),)
            subresource = self._pick(["", "", "", "/status", "/scale", "/none"])
            return Step("GET", f"{path}/{kind.name(short)}{subresource}", query, accept=accept)
        query = tuple(self._list_query(kind))
        if "Table" in accept and self._chance(0.3):
            query = (*query, ("includeObject", self._pick(["None", "Object", "Metadata", "Odd"])))
        return Step("GET", path, query, accept=accept)

    def _list_query(self, kind: Kind) -> Query:
        query = self._selectors(kind)
        if kind.namespaced and self._chance(0.3):
            query.append(("limit", self._pick(["1", "1", "2", "0", "-1", "x"])))
        if self._chance(0.15):
            query.append(("continue", self._pick(["$continue", "$continue", "x"])))
        if self._chance(0.25):
            query.append(("resourceVersion", self._pick(["$listed", "$rv", "x", ""])))
        if self._chance(0.15):
            query.append(("resourceVersionMatch", self._pick(["Exact", "NotOlderThan", "Odd"])))
        return query

    def _selectors(self, kind: Kind) -> Query:
        """Of cluster-wide kinds only the sequence's own objects are looked at."""
        query: Query = [] if kind.namespaced else [OWN]
        if kind.namespaced and self._chance(0.25):
            query.append(
                (
                    "labelSelector",
                    self._pick(
                        [
                            "a=1",
                            "a",
                            "!a",
                            "a in (1,2)",
                            "a!=1",
                            "a notin (1)",
                            "a=b=c",
                            "a in",
                            "Bad Key",
                            "a=not valid!",
                            "a>1",
                        ]
                    ),
                )
            )
        if self._chance(0.2):
            query.append(
                (
                    "fieldSelector",
                    self._pick(
                        [
                            *kind.fields,
                            "metadata.namespace=$ns",
                            "metadata.name!=a",
                            "spec.none=x",
                            "a",
                            "metadata.name",
                        ]
                    ),
                )
            )
        return query

    def _deletion(self, kind: Kind, verb: str, short: str) -> Step:
        path = kind.collection(self._pick(kind.versions))
        query: Query = []
        if verb == "delete":
            path = f"{path}/{kind.name(short)}"
        else:
            query = self._selectors(kind)
        if self._chance(0.15):
            query.append(
                self._pick(
                    [
                        ("dryRun", "All"),
                        ("propagationPolicy", "Foreground"),
                        ("propagationPolicy", "Odd"),
                        ("gracePeriodSeconds", "0"),
                        ("gracePeriodSeconds", "x"),
                        ("orphanDependents", "true"),
                    ]
                )
            )
        body = self._delete_options() if self._chance(0.5) else None
        return Step("DELETE", path, tuple(query), body, accept=self._accept())

    def _delete_options(self) -> Json:
        options: Json = {"apiVersion": "v1", "kind": "DeleteOptions"}
        for name, values in _DELETE_OPTIONS.items():
            if self._chance(0.25):
                options[name] = self._value(values)
        return options

    def _status(self, kind: Kind, short: str) -> Step:
        target = self._target(kind, short, "/status")
        edits = [(f"status.{where}", value) for where, value in self._chosen(kind.status, 2)]
        edits += self._edits(kind) if self._chance(0.3) else []
        shape = self._pick(["update", "merge", "json", "apply"])
        query = self._write_query(shape)
        if shape == "update":
            return self._sent("PUT", target.path, query, self._versioned(self._object(target, edits)))
        return self._patch(target, shape, query, edits)

    def _scale(self, kind: Kind, short: str) -> Step:
        path = self._target(kind, short, "/scale").path
        spec = {"spec": {"replicas": self._pick([0, 2, 5, -1, "x", 7])}}
        shape = self._pick(["get", "update", "merge", "apply"])
        if shape == "get":
            return Step("GET", path)
        query = self._write_query(shape)
        whole = {
            "apiVersion": "autoscaling/v1",
            "kind": "Scale",
            "metadata": {"name": short, "namespace": "$ns"},
            **spec,
        }
        if shape == "update":
            return self._sent("PUT", path, query, self._versioned(whole))
        return self._sent("PATCH", path, query, whole if shape == "apply" else spec, PATCHES[shape])


_DELETE_OPTIONS: dict[str, list[Any]] = {
    "gracePeriodSeconds": [0, 5, -1, "x"],
    "propagationPolicy": ["Background", "Foreground", "Orphan", "Odd"],
    "preconditions": [{"uid": "$uid"}, {"resourceVersion": "$rv"}, {"uid": "other"}, {"resourceVersion": "$old"}, {}],
    "orphanDependents": [True, False],
    "dryRun": [["All"], ["Odd"]],
}


def _edited(value: Json, edits: Chosen) -> Json:
    """The value with something else at some places; places that cannot be reached are left out."""
    for path, new in edits:
        _edit(value, path.split("."), new)
    return value


def _edit(value: Any, path: list[str], new: Any) -> None:
    for name in path[:-1]:
        if isinstance(value, list) and name == "0" and value:
            value = value[0]
        elif isinstance(value, dict):
            value = value.setdefault(name, {})
        else:
            return
    if not isinstance(value, dict):
        return
    if new is GONE:
        value.pop(path[-1], None)
    else:
        value[path[-1]] = new
