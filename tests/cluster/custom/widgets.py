"""A kind with everything that a CRD can say, and what both servers are asked about its objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cluster.custom.asking import MERGE, TABLE, Json, Step
from cluster.custom.defining import INTEGER, TEXT, definition, gone, installed, made

__all__ = ["OBJECTS"]

_WIDGET_SPEC: Json = {
    "type": "object",
    "properties": {
        "size": {"type": "integer", "minimum": 0, "maximum": 10, "default": 1},
        "name": {"type": "string", "maxLength": 5},
        "any": {"x-kubernetes-preserve-unknown-fields": True},
        "when": {"type": "string", "format": "date-time"},
        "flag": {"type": "boolean"},
        "ratio": {"type": "number"},
        "tags": {"type": "array", "items": TEXT},
        "port": {"x-kubernetes-int-or-string": True},
        "labels": {"type": "object", "additionalProperties": TEXT},
        "replicas": INTEGER,
        "obj": {"type": "object", "properties": {"a": TEXT}},
        "maybe": {"type": "string", "nullable": True},
        "set": {"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"},
        "embedded": {
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "x-kubernetes-preserve-unknown-fields": True,
        },
    },
    "x-kubernetes-validations": [
        {"rule": "!has(self.name) || self.name != 'bad'", "message": "no bad"},
        {"rule": "self.size >= oldSelf.size", "message": "only grows"},
    ],
}
_WIDGET_STATUS: Json = {
    "type": "object",
    "properties": {
        "replicas": INTEGER,
        "selector": TEXT,
        "phase": TEXT,
        "conditions": {"type": "array", "items": {"type": "object", "properties": {"type": TEXT, "status": TEXT}}},
    },
}
_COLUMNS = [
    ("Size", "integer", ".spec.size"),
    ("Phase", "string", ".status.phase"),
    ("When", "date", ".spec.when"),
    ("Flag", "boolean", ".spec.flag"),
    ("Ratio", "number", ".spec.ratio"),
    ("Ready", "string", '.status.conditions[?(@.type=="Ready")].status'),
    ("Tags", "string", ".spec.tags"),
    ("First", "string", ".spec.tags[0]"),
    ("Each", "string", ".spec.tags[*]"),
    ("Last", "string", ".spec.tags[-1:]"),
    ("Object", "string", ".spec.obj"),
    ("Size as text", "string", ".spec.size"),
    ("Port", "integer", ".spec.port"),
    ("Flag as text", "string", ".spec.flag"),
    ("Ratio as text", "string", ".spec.ratio"),
    ("Name as number", "integer", ".spec.name"),
    ("Label", "string", ".spec.labels.app\\.io/x"),
    ("Name as date", "date", ".spec.name"),
    ("Age", "date", ".metadata.creationTimestamp"),
]


def _widgets() -> Json:
    crd = definition("widgets", _WIDGET_SPEC)
    crd["spec"]["names"] |= {"shortNames": ["wd"], "categories": ["all"]}
    version = crd["spec"]["versions"][0]
    version["schema"]["openAPIV3Schema"] |= {"required": ["spec"]}
    version["schema"]["openAPIV3Schema"]["properties"]["status"] = _WIDGET_STATUS
    version["subresources"] = {
        "status": {},
        "scale": {
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.selector",
        },
    }
    version["additionalPrinterColumns"] = [
        {"name": name, "type": kind, "jsonPath": path, "priority": index % 2}
        for index, (name, kind, path) in enumerate(_COLUMNS)
    ]
    version["selectableFields"] = [{"jsonPath": f".spec.{name}"} for name in ("name", "size", "flag")]
    anything = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    for name, warning in (("v1beta1", {}), ("v1alpha1", {"deprecationWarning": "go away"})):
        other = {"name": name, "served": True, "storage": False, "deprecated": True, "schema": anything}
        crd["spec"]["versions"].append(other | warning)
    return crd


_W = "/apis/ex.dev/v1/namespaces/default/widgets"
_FAULTY: dict[str, Any] = {
    "name": made("Widget", "Bad", {}),
    "type": made("Widget", "b", {"size": "x"}),
    "bounds": made("Widget", "b", {"size": 11, "name": "toolong"}),
    "required": made("Widget", "b"),
    "rule": made("Widget", "b", {"name": "bad"}),
    "label": made("Widget", "b", {}, metadata={"labels": {"a b": "c"}}),
    "label type": made("Widget", "b", {}, metadata={"labels": {"a": 1}}),
    "metadata type": {"apiVersion": "ex.dev/v1", "kind": "Widget", "metadata": "x"},
    "no metadata": {"apiVersion": "ex.dev/v1", "kind": "Widget"},
    "version": made("Widget", "b", {}, "ex.dev/v2"),
    "several": made("Widget", "b", {"tags": [1], "flag": "x", "port": 1.5, "embedded": {"apiVersion": "v1"}}),
    "spec type": made("Widget", "b", "text"),
    "owner": made("Widget", "b", {}, metadata={"ownerReferences": [{"name": "x"}]}),
    "namespace": made("Widget", "b", {}, metadata={"namespace": "other"}),
    "generate name": made("Widget", "b", {}, metadata={"generateName": 4}),
    "time": made("Widget", "b", {}, metadata={"creationTimestamp": "rubbish"}),
    "set": made("Widget", "b", {"set": ["a", "b", "a"]}),
    "negative replicas": made("Widget", "b", {"replicas": -1}),
    "many replicas": made("Widget", "b", {"replicas": 5_000_000_000}),
    "nulls": made("Widget", "b", {"size": None, "name": None, "maybe": None}),
    "null metadata": made("Widget", "b", {}, metadata={"labels": None, "annotations": None}),
}
_ODD = made(
    "Widget",
    "odd",
    {
        "size": 2,
        "zip": 1,
        "obj": {"b": 1},
        "any": {"q": 1},
        "embedded": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "foo": 1}, "spec": {}},
    },
    metadata={"foo": 1},
    extra=1,
    status={"phase": "x", "zap": 1},
)
_ONE = made(
    "Widget",
    "one",
    {
        "name": "n",
        "tags": ["a", "b"],
        "when": "2020-01-01T00:00:00Z",
        "flag": True,
        "ratio": 1.5,
        "port": "80",
        "obj": {"a": "x"},
        "labels": {"app.io/x": "v"},
    },
    status={"phase": "dropped"},
)
_TWO = made("Widget", "two", {"port": 80, "when": "2020-01-01T00:00:00Z", "flag": False, "ratio": 2, "replicas": 3})
_UP: Json = {
    "phase": "Up",
    "replicas": 2,
    "selector": "a=b",
    "conditions": [{"type": "Other", "status": "X"}, {"type": "Ready", "status": "True"}],
}
_BAD_STATUSES: dict[str, Any] = {
    "text": "x",
    "null": None,
    "negative": {"replicas": -1},
    "replicas": {"replicas": "a"},
    "selector": {"selector": 3},
    "phase": {"phase": 4},
    "unknown": {"zz": 1},
}


def _status_of(status: Any) -> Callable[[Json], object]:
    return lambda value: value.update(status=status)


def _scaled(replicas: Any, **metadata: Any) -> Callable[[Json], object]:
    def change(value: Json) -> None:
        value["spec"]["replicas"] = replicas
        value["metadata"] |= metadata

    return change


def _size(size: int) -> Callable[[Json], object]:
    return lambda value: value["spec"].update(size=size)


OBJECTS: list[Step] = [
    *installed(_widgets()),
    *(Step(f"faulty {name}", "POST", f"{_W}?dryRun=All", body) for name, body in _FAULTY.items()),
    *(
        Step(f"unknown fields, {how or 'unsaid'}", "POST", f"{_W}?dryRun=All&fieldValidation={how}", _ODD)
        for how in ("Strict", "Warn", "Ignore")
    ),
    Step("create one", "POST", _W, _ONE),
    Step("create two", "POST", _W, _TWO),
    Step("shrink", "PUT", f"{_W}/one", change=_size(0)),
    Step("grow", "PUT", f"{_W}/one", change=_size(3)),
    Step("status by the object", "PUT", f"{_W}/one", change=_status_of({"phase": "no"})),
    Step("label", "PATCH", f"{_W}/one", {"metadata": {"labels": {"a": "b"}}}, MERGE),
    Step("rename", "PATCH", f"{_W}/one", {"metadata": {"name": "other"}}, MERGE),
    Step("replace what is not there", "PUT", f"{_W}/nope", made("Widget", "nope", {})),
    Step("status", "PUT", f"{_W}/one/status", change=_status_of(_UP)),
    Step(
        "status and more",
        "PATCH",
        f"{_W}/two/status",
        {"status": {"phase": "P"}, "spec": {"size": 9}, "metadata": {"labels": {"c": "d"}}},
        MERGE,
    ),
    *(
        Step(f"bad status: {name}", "PUT", f"{_W}/one/status?dryRun=All", change=_status_of(status))
        for name, status in _BAD_STATUSES.items()
    ),
    Step("table", "GET", _W, accept=TABLE),
    Step("table of one", "GET", f"{_W}/one", accept=TABLE),
    Step("scale without replicas", "GET", f"{_W}/one/scale"),
    Step("scale", "GET", f"{_W}/two/scale"),
    Step("patch the scale", "PATCH", f"{_W}/two/scale", {"spec": {"replicas": 5}}, MERGE),
    Step("scaled", "GET", f"{_W}/two"),
    Step("negative scale", "PUT", f"{_W}/two/scale", change=_scaled(-1)),
    Step("old scale", "PUT", f"{_W}/two/scale", change=_scaled(4, resourceVersion="1")),
    Step("scale of another", "PUT", f"{_W}/two/scale", change=_scaled(4, name="other")),
    Step("scale without a version", "PUT", f"{_W}/two/scale", change=_scaled(4, resourceVersion="")),
    Step("dry scale", "PATCH", f"{_W}/two/scale?dryRun=All", {"spec": {"replicas": 9}}, MERGE),
    Step("scale to nothing", "PUT", f"{_W}/two/scale", change=_scaled(0)),
    Step("scaled to nothing", "GET", f"{_W}/two"),
    Step("scale of nothing", "GET", f"{_W}/nope/scale"),
    Step("in another version", "GET", f"{_W.replace('/v1/', '/v1beta1/')}/one"),
    Step(
        "create in another version",
        "POST",
        _W.replace("/v1/", "/v1alpha1/"),
        made("Widget", "three", {"size": 77, "zzz": 1}, "ex.dev/v1alpha1"),
    ),
    Step("in the stored version", "GET", f"{_W}/three"),
    Step("label it", "PATCH", f"{_W}/three", {"metadata": {"labels": {"x": "y"}}}, MERGE),
    Step("change what is in order", "PATCH", f"{_W}/three", {"spec": {"name": "zz"}}, MERGE),
    Step("change what is not", "PATCH", f"{_W}/three", {"spec": {"size": 78}}, MERGE),
    Step("strategic", "PATCH", f"{_W}/three", {"spec": {}}, "application/strategic-merge-patch+json"),
    *(
        Step(f"select {field}", "GET", f"{_W}?fieldSelector={field}", accept=TABLE)
        for field in ("spec.name=n", "spec.size=3", "spec.flag=true", "spec.flag=false", "spec.name=", "spec.size!=3")
    ),
    *gone("widgets.ex.dev"),
]
