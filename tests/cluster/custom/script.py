"""What both servers are asked about custom kinds, step by step."""

from __future__ import annotations

import copy

from cluster.custom.asking import MERGE, TABLE, Json, Step
from cluster.custom.defining import INTEGER, definition, gone, has_condition, installed, made
from cluster.custom.serving import CRDS
from cluster.custom.widgets import OBJECTS

__all__ = ["CONVERSATIONS"]

_GADGETS = definition("gadgets", {"type": "object", "properties": {"size": INTEGER}})
_CLASH = definition("gizmos", {"type": "object"}, names={"plural": "gizmos", "kind": "Gadget"})
_CLASHES = definition(
    "gazmos",
    {"type": "object"},
    names={"plural": "gazmos", "kind": "Gazmo", "shortNames": ["gadgets", "gadget", "gz"], "categories": ["all"]},
)
_G = "/apis/ex.dev/v1/namespaces/default/gadgets"

LIFE: list[Step] = [
    *installed(_GADGETS),
    Step("a kind that is taken", "POST", CRDS, _CLASH),
    Step("its names", "GET", f"{CRDS}/gizmos.ex.dev", until=has_condition("NamesAccepted", "False")),
    Step("short names that are taken", "POST", CRDS, _CLASHES),
    Step("their names", "GET", f"{CRDS}/gazmos.ex.dev", until=has_condition("NamesAccepted", "False")),
    Step("one with a finalizer", "POST", _G, made("Gadget", "a", {"size": 1}, metadata={"finalizers": ["x.dev/y"]})),
    Step("one without", "POST", _G, made("Gadget", "b", {"size": 1})),
    Step("delete it", "DELETE", f"{CRDS}/gadgets.ex.dev"),
    Step(
        "deletion goes on",
        "GET",
        f"{CRDS}/gadgets.ex.dev",
        until=has_condition("Terminating", "True", "InstanceDeletionInProgress"),
    ),
    Step("one is gone", "GET", f"{_G}/b", until=lambda code, _: code == 404),
    Step("one waits", "GET", f"{_G}/a"),
    Step("none is created", "POST", _G, made("Gadget", "c", {"size": 1})),
    Step("the finalizer goes", "PATCH", f"{_G}/a", {"metadata": {"finalizers": None}}, MERGE),
    Step("the CRD is gone", "GET", f"{CRDS}/gadgets.ex.dev", until=lambda code, _: code == 404),
    Step("the other has its names", "GET", f"{CRDS}/gizmos.ex.dev", until=has_condition("Established", "True")),
    *gone("gizmos.ex.dev"),
    Step("", "GET", f"{CRDS}/gazmos.ex.dev", until=has_condition("Established", "True")),
    *gone("gazmos.ex.dev"),
]

_PLAINS = definition("plains", {"type": "object", "properties": {"n": INTEGER}}, scope="Cluster")
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
    *installed(_PLAINS),
    Step("a cluster-wide one", "POST", _P, made("Plain", "p", {"n": 1}, status={})),
    Step("its table", "GET", _P, accept=TABLE),
    Step("status is no subresource", "PATCH", f"{_P}/p", {"status": None}, MERGE),
    Step("only a label", "PATCH", f"{_P}/p", {"metadata": {"labels": {"s": "2"}}}, MERGE),
    Step("another schema", "PUT", f"{CRDS}/plains.ex.dev", change=_next_version),
    Step("another version", "GET", "/apis/ex.dev/v2/plains/p", until=lambda code, _: code == 200),
    Step("the old version", "GET", f"{_P}/p"),
    Step("list", "GET", _P, accept=TABLE),
    Step("what must stay", "PUT", f"{CRDS}/plains.ex.dev", change=_other_identity),
    Step("a version in use", "PUT", f"{CRDS}/plains.ex.dev", change=_drop_first),
    *gone("plains.ex.dev"),
]

CONVERSATIONS = {"life": LIFE, "objects": OBJECTS, "changes": CHANGES}
