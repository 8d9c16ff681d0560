"""What both servers are asked about custom kinds, step by step, and answers without what differs from run to run."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from cluster.custom.serving import CRDS
from navarch._base.clock import SystemClock

__all__ = ["CONVERSATIONS", "Ask", "Json", "Step", "held"]

Json = dict[str, Any]
Ask = Callable[..., Awaitable[tuple[int, Json]]]
MERGE = "application/merge-patch+json"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
_TEXT, _INTEGER = {"type": "string"}, {"type": "integer"}
_TRIES = 2000


@dataclass(frozen=True)
class Step:
    """One request. With `change` its body is what is at `path` now, changed. With `until` it is asked again until then."""

    name: str
    method: str
    path: str
    body: Any = None
    media_type: str = "application/json"
    accept: str = "application/json"
    change: Callable[[Json], object] | None = None
    until: Callable[[int, Json], bool] | None = None


async def held(ask: Ask, steps: list[Step]) -> dict[str, Any]:
    """The normalised answer to each step."""
    answers: dict[str, Any] = {}
    for step in steps:
        answers[step.name] = normal(*await _asked(ask, step))
    return answers


async def _asked(ask: Ask, step: Step) -> tuple[int, Json]:
    clock, body = SystemClock(), step.body
    if step.change is not None:
        _, body = await ask("GET", step.path.split("?")[0])
        step.change(body)
    for _ in range(_TRIES):
        answer = await ask(step.method, step.path, body, media_type=step.media_type, accept=step.accept)
        if step.until is None or step.until(*answer):
            return answer
        await clock.sleep(0.01)
    raise AssertionError(f"expected {step.name} in time, got {answer}")


_VARYING = {"uid": "a uid", "resourceVersion": "a version", "creationTimestamp": "a time"}
_VARYING |= {"deletionTimestamp": "a time", "lastTransitionTime": "a time", "time": "a time"}
_AGE = re.compile(r"\d+[smhdy](\d+[smhd])?")


def normal(code: int, answer: Json) -> Json:
    """An answer without ids, times, descriptions of columns, and the order in which faults were found."""
    if answer.get("kind") == "Status":
        return {"code": code, **_status(answer)}
    if answer.get("kind") == "Table":
        return {"code": code, "columns": [_column(each) for each in answer["columnDefinitions"]], **_rows(answer)}
    return {"code": code, "object": _normal(answer)} if answer else {"code": code}


def _status(answer: Json) -> Json:
    details = answer.get("details", {})
    causes = sorted(details.get("causes", ()), key=str)
    said = answer.get("message", "") if len(causes) < 2 else answer["message"].partition(" is invalid: ")[0]
    found = {"message": said, "reason": answer.get("reason", ""), "causes": causes}
    found |= {name: details[name] for name in ("name", "group", "kind") if name in details}
    return {name: value for name, value in found.items() if value}


def _column(column: Json) -> Json:
    return {name: value for name, value in column.items() if name != "description"}


def _rows(answer: Json) -> Json:
    rows = [
        ["an age" if isinstance(cell, str) and _AGE.fullmatch(cell) else cell for cell in row["cells"]]
        for row in answer["rows"]
    ]
    return {"rows": rows}


def _normal(value: Any) -> Any:
    if isinstance(value, list):
        return [_normal(item) for item in value]
    if not isinstance(value, dict):
        return value
    made = {key: _VARYING[key] if key in _VARYING and item else _normal(item) for key, item in value.items()}
    if isinstance(value.get("managedFields"), list):
        made["managedFields"] = sorted(made["managedFields"], key=lambda each: json.dumps(each, sort_keys=True))
    return made


def definition(plural: str, schema: Json, group: str = "ex.dev", **spec: Any) -> Json:
    """A CRD with one version."""
    kind = plural.removesuffix("s").capitalize()
    root = {"type": "object", "properties": {"spec": schema, "status": {"type": "object"}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": root}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": [version],
        }
        | spec,
    }


def _made(kind: str, name: str, spec: Any = None, group: str = "ex.dev/v1", **more: Any) -> Json:
    metadata = {"name": name} | more.pop("metadata", {})
    return {"apiVersion": group, "kind": kind, "metadata": metadata} | ({} if spec is None else {"spec": spec}) | more


def _is(kind: str, status: str, reason: str = "") -> Callable[[int, Json], bool]:
    def holds(code: int, answer: Json) -> bool:
        found = (answer.get("status") or {}).get("conditions") or []
        return code == 200 and any(
            each["type"] == kind and each["status"] == status and reason in {"", each["reason"]} for each in found
        )

    return holds


def _installed(made: Json) -> list[Step]:
    name, spec = made["metadata"]["name"], made["spec"]
    home = "/namespaces/default" if spec["scope"] == "Namespaced" else ""
    version = next(each["name"] for each in spec["versions"] if each["served"])
    path = f"/apis/{spec['group']}/{version}{home}/{spec['names']['plural']}"
    return [
        Step(f"create the CRD {name}", "POST", CRDS, made),
        Step(f"{name} is established", "GET", f"{CRDS}/{name}", until=_is("Established", "True")),
        Step(f"{name} is served", "GET", path, accept=TABLE, until=lambda code, _: code == 200),
    ]


def _gone(*names: str) -> list[Step]:
    made = []
    for name in names:
        made.append(Step(f"delete the CRD {name}", "DELETE", f"{CRDS}/{name}"))
        made.append(Step(f"{name} is gone", "GET", f"{CRDS}/{name}", until=lambda code, _: code == 404))
    return made


_GADGETS = definition("gadgets", {"type": "object", "properties": {"size": _INTEGER}})
_CLASH = definition("gizmos", {"type": "object"}, names={"plural": "gizmos", "kind": "Gadget"})
_CLASHES = definition(
    "gazmos",
    {"type": "object"},
    names={"plural": "gazmos", "kind": "Gazmo", "shortNames": ["gadgets", "gadget", "gz"], "categories": ["all"]},
)
_G = "/apis/ex.dev/v1/namespaces/default/gadgets"

LIFE: list[Step] = [
    *_installed(_GADGETS),
    Step("a kind that is taken", "POST", CRDS, _CLASH),
    Step("its names", "GET", f"{CRDS}/gizmos.ex.dev", until=_is("NamesAccepted", "False")),
    Step("short names that are taken", "POST", CRDS, _CLASHES),
    Step("their names", "GET", f"{CRDS}/gazmos.ex.dev", until=_is("NamesAccepted", "False")),
    Step("one with a finalizer", "POST", _G, _made("Gadget", "a", {"size": 1}, metadata={"finalizers": ["x.dev/y"]})),
    Step("one without", "POST", _G, _made("Gadget", "b", {"size": 1})),
    Step("delete it", "DELETE", f"{CRDS}/gadgets.ex.dev"),
    Step(
        "deletion goes on",
        "GET",
        f"{CRDS}/gadgets.ex.dev",
        until=_is("Terminating", "True", "InstanceDeletionInProgress"),
    ),
    Step("one is gone", "GET", f"{_G}/b", until=lambda code, _: code == 404),
    Step("one waits", "GET", f"{_G}/a"),
    Step("none is created", "POST", _G, _made("Gadget", "c", {"size": 1})),
    Step("the finalizer goes", "PATCH", f"{_G}/a", {"metadata": {"finalizers": None}}, MERGE),
    Step("the CRD is gone", "GET", f"{CRDS}/gadgets.ex.dev", until=lambda code, _: code == 404),
    Step("the other has its names", "GET", f"{CRDS}/gizmos.ex.dev", until=_is("Established", "True")),
    *_gone("gizmos.ex.dev", "gazmos.ex.dev"),
]

_WIDGET_SPEC: Json = {
    "type": "object",
    "properties": {
        "size": {"type": "integer", "minimum": 0, "maximum": 10, "default": 1},
        "name": {"type": "string", "maxLength": 5},
        "any": {"x-kubernetes-preserve-unknown-fields": True},
        "when": {"type": "string", "format": "date-time"},
        "flag": {"type": "boolean"},
        "ratio": {"type": "number"},
        "tags": {"type": "array", "items": _TEXT},
        "port": {"x-kubernetes-int-or-string": True},
        "labels": {"type": "object", "additionalProperties": _TEXT},
        "replicas": _INTEGER,
        "obj": {"type": "object", "properties": {"a": _TEXT}},
        "maybe": {"type": "string", "nullable": True},
        "set": {"type": "array", "items": _TEXT, "x-kubernetes-list-type": "set"},
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
        "replicas": _INTEGER,
        "selector": _TEXT,
        "phase": _TEXT,
        "conditions": {"type": "array", "items": {"type": "object", "properties": {"type": _TEXT, "status": _TEXT}}},
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
    made = definition("widgets", _WIDGET_SPEC)
    made["spec"]["names"] |= {"shortNames": ["wd"], "categories": ["all"]}
    version = made["spec"]["versions"][0]
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
        made["spec"]["versions"].append(other | warning)
    return made


_W = "/apis/ex.dev/v1/namespaces/default/widgets"
_FAULTY: dict[str, Any] = {
    "name": _made("Widget", "Bad", {}),
    "type": _made("Widget", "b", {"size": "x"}),
    "bounds": _made("Widget", "b", {"size": 11, "name": "toolong"}),
    "required": _made("Widget", "b"),
    "rule": _made("Widget", "b", {"name": "bad"}),
    "label": _made("Widget", "b", {}, metadata={"labels": {"a b": "c"}}),
    "label type": _made("Widget", "b", {}, metadata={"labels": {"a": 1}}),
    "metadata type": {"apiVersion": "ex.dev/v1", "kind": "Widget", "metadata": "x"},
    "no metadata": {"apiVersion": "ex.dev/v1", "kind": "Widget"},
    "version": _made("Widget", "b", {}, "ex.dev/v2"),
    "several": _made("Widget", "b", {"tags": [1], "flag": "x", "port": 1.5, "embedded": {"apiVersion": "v1"}}),
    "spec type": _made("Widget", "b", "text"),
    "owner": _made("Widget", "b", {}, metadata={"ownerReferences": [{"name": "x"}]}),
    "namespace": _made("Widget", "b", {}, metadata={"namespace": "other"}),
    "generate name": _made("Widget", "b", {}, metadata={"generateName": 4}),
    "time": _made("Widget", "b", {}, metadata={"creationTimestamp": "rubbish"}),
    "set": _made("Widget", "b", {"set": ["a", "b", "a"]}),
    "negative replicas": _made("Widget", "b", {"replicas": -1}),
    "many replicas": _made("Widget", "b", {"replicas": 5_000_000_000}),
    "nulls": _made("Widget", "b", {"size": None, "name": None, "maybe": None}),
    "null metadata": _made("Widget", "b", {}, metadata={"labels": None, "annotations": None}),
}
_ODD = _made(
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
_ONE = _made(
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
_TWO = _made("Widget", "two", {"port": 80, "when": "2020-01-01T00:00:00Z", "flag": False, "ratio": 2, "replicas": 3})
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
    *_installed(_widgets()),
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
    Step("replace what is not there", "PUT", f"{_W}/nope", _made("Widget", "nope", {})),
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
        _made("Widget", "three", {"size": 77, "zzz": 1}, "ex.dev/v1alpha1"),
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
    *_gone("widgets.ex.dev"),
]

_PLAINS = definition("plains", {"type": "object", "properties": {"n": _INTEGER}}, scope="Cluster")
_P = "/apis/ex.dev/v1/plains"


def _next_version(crd: Json) -> None:
    """A field goes, one with a default comes, and objects are stored in another version from now on."""
    first = crd["spec"]["versions"][0]
    first["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"] = {"m": {"type": "integer", "default": 5}}
    anything = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    crd["spec"]["versions"].append(copy.deepcopy(first) | {"name": "v2", "schema": anything})
    first["storage"] = False


def _other_identity(crd: Json) -> None:
    crd["spec"]["scope"], crd["spec"]["group"] = "Namespaced", "other.dev"


def _drop_first(crd: Json) -> None:
    crd["spec"]["versions"].pop(0)


CHANGES: list[Step] = [
    *_installed(_PLAINS),
    Step("a cluster-wide one", "POST", _P, _made("Plain", "p", {"n": 1}, status={})),
    Step("its table", "GET", _P, accept=TABLE),
    Step("status is no subresource", "PATCH", f"{_P}/p", {"status": None}, MERGE),
    Step("only a label", "PATCH", f"{_P}/p", {"metadata": {"labels": {"s": "2"}}}, MERGE),
    Step("another schema", "PUT", f"{CRDS}/plains.ex.dev", change=_next_version),
    Step("another version", "GET", "/apis/ex.dev/v2/plains/p", until=lambda code, _: code == 200),
    Step("the old version", "GET", f"{_P}/p"),
    Step("list", "GET", _P, accept=TABLE),
    Step("what must stay", "PUT", f"{CRDS}/plains.ex.dev", change=_other_identity),
    Step("a version in use", "PUT", f"{CRDS}/plains.ex.dev", change=_drop_first),
    *_gone("plains.ex.dev"),
]

CONVERSATIONS = {"life": LIFE, "objects": OBJECTS, "changes": CHANGES}
