"""Sequences about definitions of custom kinds: new ones, and changes of one that is there.

Nothing of it is stored. What a real server makes of a definition in the time after it was stored cannot be waited for,
and all sequences share what is there.
"""

from __future__ import annotations

import copy
import random
from typing import Any, Final

from differential.custom import DEFINITIONS
from differential.kinds import GONE, Edits
from differential.steps import PATCHES, Json, Step

_COLLECTION: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_DRY: Final = ("dryRun", "All")
_RULES: Final = "x-kubernetes-validations"
_SCALE: Final = {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"}
_LIST: Json = {"type": "array", "items": {"type": "object", "properties": {"k": {"type": "string"}}}}
_MAP_LIST: Json = {**_LIST, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}
_REQUIRED: Json = {**_MAP_LIST, "items": {**_LIST["items"], "required": ["k"]}}

_NEW: Json = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "things.$ns.example.com"},
    "spec": {
        "group": "$ns.example.com",
        "scope": "Namespaced",
        "names": {"plural": "things", "kind": "Thing"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {"a": {"type": "string"}, "n": {"type": "integer"}},
                            }
                        },
                    }
                },
            }
        ],
    },
}
_OF_SPEC: Edits = {
    "additionalProperties": [GONE, {"type": "string"}],
    "description": ["d"],
    "required": [["a"], ["none"]],
    "type": ["object", GONE, "odd", "string"],
    "x-kubernetes-preserve-unknown-fields": [True, False],
    "oneOf": [[{"required": ["a"]}], [{"type": "object"}]],
    "not": [{"required": ["b"]}, {"default": 1}],
    _RULES: [
        [{"rule": "self.n < 5"}],
        [{"rule": "self.a == oldSelf.a", "reason": "FieldValueForbidden", "fieldPath": ".a"}],
        [{"rule": "self.a"}],
        [{"rule": "self.b == 1"}],
        [{"rule": "self.a =="}],
        [{"rule": "true", "reason": "Odd"}],
        [{"rule": "", "message": "m"}],
        [{"rule": "true", "message": "a\nb"}],
        [{"rule": "true", "fieldPath": ".none"}],
    ],
    "properties.a.default": ["x", 5, None],
    "properties.a.enum": [["a", "b"], []],
    "properties.a.format": ["date-time", "odd"],
    "properties.a.nullable": [True],
    "properties.a.pattern": ["^a", "("],
    "properties.a.type": ["string", GONE, "odd"],
    "properties.a.uniqueItems": [True],
    "properties.l": [_LIST, _REQUIRED, _MAP_LIST, {"type": "array"}, {**_LIST, "x-kubernetes-list-type": "odd"}],
}
_OF_VERSION: Edits = {
    "name": ["v2", "1v", ""],
    "served": [False, GONE],
    "storage": [True, False],
    "deprecated": [True],
    "deprecationWarning": ["w", ""],
    "schema": [GONE, {}],
    "subresources": [
        {"status": {}},
        {"scale": _SCALE},
        {"scale": {}},
        {"scale": {**_SCALE, "statusReplicasPath": ".spec.n"}},
    ],
    "additionalPrinterColumns": [
        [{"name": "A", "type": "string", "jsonPath": ".spec.a"}],
        [{"name": "", "type": "odd", "jsonPath": "spec.a"}],
    ],
    "selectableFields": [
        [{"jsonPath": ".spec.a"}],
        [{"jsonPath": ".spec.none"}],
        [{"jsonPath": ".spec"}],
        [{"jsonPath": ".spec.a"}, {"jsonPath": ".spec.a"}],
    ],
    **{f"schema.openAPIV3Schema.properties.spec.{path}": values for path, values in _OF_SPEC.items()},
    "schema.openAPIV3Schema.type": ["object", GONE, "string"],
    "schema.openAPIV3Schema.properties.metadata": [
        {"type": "object", "properties": {"name": {"type": "string", "maxLength": 3}}},
        {"type": "object", "properties": {"labels": {"type": "object"}}},
    ],
}
_EDITS: Edits = {
    "spec.group": ["$ns.example.org", "bad_group", ""],
    "spec.scope": ["Cluster", "Odd", GONE],
    "spec.names.plural": ["others", "BAD", ""],
    "spec.names.kind": ["Other", "bad_kind", GONE],
    "spec.names.singular": ["thing", "BAD"],
    "spec.names.listKind": ["ThingList", "Thing"],
    "spec.names.shortNames": [["t"], ["T!"]],
    "spec.names.categories": [["all"], ["BAD!"]],
    "spec.versions": [[], GONE],
    "spec.conversion": [
        {"strategy": "None"},
        {"strategy": "Odd"},
        {"strategy": "Webhook"},
        {"strategy": "None", "webhook": {"conversionReviewVersions": ["v1"]}},
        {
            "strategy": "Webhook",
            "webhook": {
                "conversionReviewVersions": ["v1"],
                "clientConfig": {"service": {"name": "a", "namespace": "b"}},
            },
        },
    ],
    "spec.preserveUnknownFields": [False, True],
    "spec.unheardOf": [1],
    "metadata.labels": [{"a": "1"}, {"a": "not valid!"}],
    **{f"spec.versions.0.{path}": values for path, values in _OF_VERSION.items()},
}


def definition_steps(rng: random.Random) -> list[Step]:
    """New definitions, and changes of the one of the widgets."""
    return [_creation(rng) if rng.random() < 0.7 else _change(rng) for _ in range(rng.randint(3, 12))]


def _creation(rng: random.Random) -> Step:
    return Step("POST", _COLLECTION, (_DRY, *_validation(rng)), _edited(copy.deepcopy(_NEW), rng))


def _change(rng: random.Random) -> Step:
    [widgets] = (each for each in DEFINITIONS if each["spec"]["names"]["kind"] == "Widget")
    path = f"{_COLLECTION}/{widgets['metadata']['name']}"
    if rng.random() < 0.5:
        body = _edited(copy.deepcopy(widgets), rng)
        body["metadata"]["name"] = widgets["metadata"]["name"]
        body["metadata"]["resourceVersion"] = rng.choice(["$rv", ""])
        return Step("PUT", path, (_DRY, *_validation(rng)), body)
    edits = {place: values for place, values in _EDITS.items() if "versions.0" not in place}
    place = rng.choice(sorted(edits))
    value = rng.choice(edits[place])
    patch: Any = None if value is GONE else value
    for name in reversed(place.split(".")):
        patch = {name: patch}
    return Step("PATCH", path, (_DRY, *_validation(rng)), patch, media_type=PATCHES["merge"])


def _validation(rng: random.Random) -> list[tuple[str, str]]:
    return [("fieldValidation", "Strict")] if rng.random() < 0.2 else []


def _edited(definition: Json, rng: random.Random) -> Json:
    for place in sorted(rng.sample(sorted(_EDITS), rng.choice([0, 1, 1, 1, 2, 3]))):
        values = _EDITS[place]
        _edit(definition, place.split("."), copy.deepcopy(values[int(len(values) * rng.random() ** 1.5)]))
    return definition


def _edit(value: Any, path: list[str], new: Any) -> None:
    """Sets what is at the path; not if there is nothing on the way to it."""
    for name in path[:-1]:
        if isinstance(value, list):
            value = value[int(name)] if value else None
        elif isinstance(value, dict):
            value = value.setdefault(name, {})
    if not isinstance(value, dict):
        return
    if new is GONE:
        value.pop(path[-1], None)
    else:
        value[path[-1]] = new
