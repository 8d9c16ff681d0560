"""Sequences of writes that were thought out: each shows one rule of who owns what."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from cluster.fields import widgets
from cluster.fields.replay import Json
from cluster.fields.samples import SAMPLES, labelled, sample

CLIENT_SIDE = "kubectl-client-side-apply"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
WAIT = "wait"


class Write(NamedTuple):
    """A request about the script's object."""

    operation: str
    manager: str
    body: Any
    force: bool = False
    version: str = "v1"
    subresource: str = ""


class Script(NamedTuple):
    """Requests about one object, one after the other; `WAIT` lets the clock go on."""

    plural: str
    name: str
    writes: list[Write | str]


def config_map(name: str, data: Any = None, **meta: Any) -> Json:
    body: Json = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default", **meta}}
    return body if data is None else {**body, "data": data}


def widget(name: str, spec: Any, version: str = "v1", **meta: Any) -> Json:
    names = {"apiVersion": f"{widgets.GROUP}/{version}", "kind": "Widget"}
    return {**names, "metadata": {"name": name, "namespace": "default", **meta}, "spec": spec}


def noted(body: Json) -> Json:
    """The object with what `kubectl apply` writes on it."""
    note = json.dumps(body, sort_keys=True, separators=(",", ":")) + "\n"
    return {**body, "metadata": {**body["metadata"], "annotations": {LAST_APPLIED: note}}}


def entry(fields: Any, **more: Any) -> Json:
    """An entry of managed fields as a client might write it; what is None is left out."""
    whole = {
        "manager": "zoe",
        "operation": "Update",
        "apiVersion": "v1",
        "time": "2020-01-01T00:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
        **more,
    }
    return {name: value for name, value in whole.items() if value is not None}


def scripts() -> list[Script]:
    """All of them."""
    return [
        *_of_ownership(),
        *_of_kubectl(),
        *_of_entries(),
        *_of_lists(),
        *_of_faults(),
        *_of_kinds(),
    ]


def _of_ownership() -> list[Script]:
    def one(data: Any, **meta: Any) -> Json:
        return config_map("owned", data, **meta)

    many = [Write("merge", f"m{number:02}", {"data": {f"k{number}": "1"}}) for number in range(13)]
    return [
        Script(
            "configmaps",
            "owned",
            [
                Write("apply", "ann", one({"a": "1", "b": "1"})),
                Write("apply", "bob", one({"a": "1"})),
                Write("apply", "bob", one({"a": "2"})),
                Write("apply", "bob", one({"a": "2"}), force=True),
                Write("apply", "ann", one({"b": "1"})),
                Write("apply", "ann", one({})),
                Write("apply", "ann", one(None)),
                Write("apply", "bob", one(None)),
                Write("merge", "cid", {"data": {"c": "1"}}),
                Write("apply", "ann", one({"c": "1"})),
                Write("apply", "ann", one({"d": "1"})),
                Write("apply", "ann", one(None, labels={"x": "1"}, annotations={"y": "1"})),
                Write("apply", "ann", one(None, labels={"x": "1"}, finalizers=["x.io/a"])),
                Write("apply", "bob", one(None, finalizers=["x.io/b", "x.io/a"])),
                Write("apply", "ann", one(None, labels=None)),
                Write("apply", "bob", one(None, finalizers=[])),
            ],
        ),
        Script("configmaps", "many", [Write("create", "first", config_map("many", {"a": "1"})), *many]),
        Script(
            "configmaps",
            "timed",
            [
                Write("apply", "ann", config_map("timed", {"a": "1"})),
                WAIT,
                Write("apply", "ann", config_map("timed", {"a": "1"})),
                Write("merge", "bob", {"data": {"a": "1"}}),
                Write("apply", "bob", config_map("timed", {"a": "1"})),
                WAIT,
                Write("apply", "bob", config_map("timed", {"a": "1"})),
                Write("merge", "cid", {"data": {"c": "1"}}),
                WAIT,
                Write("merge", "cid", {"data": {"c": "1"}}),
                Write("apply", "bob", config_map("timed", {})),
                WAIT,
                Write("apply", "bob", config_map("timed", {"b": "1"})),
            ],
        ),
    ]


def _of_kubectl() -> list[Script]:
    before = config_map("migrated", {"a": "1", "b": "1", "c": "1"})
    other = config_map("foreign", {"a": "1", "b": "1"})
    return [
        Script(
            "configmaps",
            "migrated",
            [
                Write("create", CLIENT_SIDE, noted(before)),
                Write("apply", "ann", config_map("migrated", {"a": "2"})),
                Write("apply", "kubectl", config_map("migrated", {"a": "2", "b": "1"})),
                Write("apply", "kubectl", config_map("migrated", {"b": "3"}, labels={"x": "<&>"})),
            ],
        ),
        Script(
            "configmaps",
            "foreign",
            [
                Write("create", CLIENT_SIDE, noted(other)),
                Write("merge", "bob", {"data": {"b": "9"}}),
                Write("apply", "kubectl", config_map("foreign", {"a": "2", "b": "3"})),
                Write("apply", "kubectl", config_map("foreign", {"a": "2", "b": "3"}), force=True),
                Write("merge", "bob", {"metadata": {"annotations": {LAST_APPLIED: "{rubbish"}}}),
                Write("merge", "bob", {"data": {"a": "7"}}),
                Write("apply", "kubectl", config_map("foreign", {"a": "3"})),
            ],
        ),
    ]


def _of_entries() -> list[Script]:
    """Managed fields that clients write."""

    def put(*entries: Any, data: Any = None) -> Write:
        return Write("update", "bob", config_map("entries", data or {"a": "1"}, managedFields=list(entries)))

    good = entry({"f:data": {".": {}, "f:a": {}}})
    writes = [
        put(),
        Write("merge", "bob", {"data": {"b": "1"}}),
        Write("apply", "ann", config_map("entries", {"c": "1"})),
        put({}),
        put(good),
        put(entry({"f:data": {"f:a": {}}}, operation="Apply")),
        put(good, entry({"f:data": {"f:a": {}}}, manager=None, operation="Apply", time="2020-01-01T02:00:00+02:00")),
        put(entry({"f:data": {"f:a": {}}}, operation="Frob")),
        put(entry({"f:data": {"f:a": {}}}, fieldsType=None)),
        put(entry({"f:data": {"f:a": {}}}, fieldsType="FieldsV2")),
        put(entry({"f:data": {"f:a": {}}}, apiVersion=None)),
        put(entry({"f:data": {"f:a": {}}}, apiVersion="v9")),
        put(good, data={"a": "1", "x": "1"}),
        put(entry({"f:data": {"f:a": {}}}, apiVersion="v9"), good),
        put(good, data={"a": "1", "z": "1"}),
        put(entry({"x:data": {}, "f:data": {"f:a": {}}})),
        put(entry({"nonsense": {}})),
        put(entry({"k:{bad": {}})),
        put(entry(None)),
        put(entry({})),
        put(good, good),
        put(entry({"f:metadata": {"f:ownerReferences": {'k:{"z":1,"a":"<"}': {}, 'k:{"a":"<"}': {}, "i:3": {}}}})),
    ]
    names = [Write("create", "ann", config_map("entries", {"a": "1"})), *writes]
    custom = [
        Write("create", "ann", widget("entries", {"text": "a"})),
        Write("update", "bob", widget("entries", {"text": "a"}, managedFields=[{}])),
        Write("update", "bob", widget("entries", {"text": "b"})),
        Write("apply", "cid", widget("entries", {"text": "b", "flag": True})),
        Write("update", "bob", widget("entries", {"text": "c"}, managedFields=[])),
        Write("update", "bob", widget("entries", {"text": "c"}, managedFields=[entry({"f:spec": {"f:text": {}}})])),
        Write("update", "bob", widget("entries", {"text": "d"})),
    ]
    return [Script("configmaps", "entries", list(names)), Script("widgets", "entries", list(custom))]


def _of_lists() -> list[Script]:
    """Lists and odd names."""
    writes = [*_sets_and_items(), *_odd_names(), *_ports(), *_nested_lists(), *_free_forms()]
    return [Script("widgets", "lists", writes), Script("podtemplates", "twice", _same_names())]


def _listed(manager: str, spec: Json, *, operation: str = "apply", force: bool = False, version: str = "v1") -> Write:
    """A write of the widget whose lists the script is about."""
    return Write(operation, manager, widget("lists", spec, version), force, version)


def _sets_and_items() -> list[Write | str]:
    """Each has its own members of a set and its own items; what nobody applies any more goes."""
    return [
        _listed("ann", {"set": ["a", "b", "c"], "items": [{"name": "x", "value": 1}]}),
        _listed("bob", {"set": ["d", "c", "a"], "items": [{"name": "y"}, {"name": "x", "tags": ["q"]}]}),
        _listed("ann", {"set": ["c", "e"]}),
        _listed("bob", {"items": [{"name": "x", "tags": []}]}),
    ]


def _odd_names() -> list[Write | str]:
    """Members and keys that need care where they are written as paths, in another order each time."""
    odd = ['a"b', "é", "<&>", "😀", "back\\slash", "tab\t", "\x01", ""]
    other = {"numbers": [9, 10, 2500000], "set": odd[::-1], "map": dict.fromkeys(odd, "1")}
    return [
        _listed("ann", {"numbers": [10, 9, 100], "set": odd}),
        _listed("cid", other, operation="update"),
        _listed("ann", {"map": dict.fromkeys(odd, "2")}),
    ]


def _ports() -> list[Write | str]:
    """Items with two keys, of which one may have its default."""
    far, near = {"port": 2500000}, {"port": 80, "protocol": "UDP"}
    return [
        _listed("ann", {"ports": [{**far, "name": "p"}, near]}),
        _listed("bob", {"ports": [{**far, "name": "q"}, {**near, "name": "r"}]}),
        _listed("bob", {"ports": [{"port": 80}]}, force=True),
        _listed("bob", {"ports": [{"port": 81}]}, version="v1beta1"),
    ]


def _nested_lists() -> list[Write | str]:
    """Lists in a structure, and nothing in its place."""
    return [
        _listed("bob", {"struct": {"inner": {"x": 1}, "items": [{"name": "a", "ports": [{"port": 1}]}]}}),
        _listed("bob", {"struct": {"items": [{"name": "a", "value": 1}]}}),
        _listed("bob", {"struct": None, "text": None}),
    ]


def _free_forms() -> list[Write | str]:
    """Fields of no fixed form, which become another one."""
    return [
        _listed("bob", {"any": {"a": {"b": 1}}, "free": {"x": {"y": [1]}}}),
        _listed("bob", {"any": [1], "free": {"x": 1}}),
        _listed("bob", {"any": True, "free": {"x": {}}}),
        _listed("cid", {"any": 1}),
        _listed("cid", {"any": {"a": True}}, force=True),
        _listed("bob", {}),
    ]


def _same_names() -> list[Write | str]:
    """Items of a built-in kind that have the same name."""
    twice = [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}, {"name": "B", "value": "1"}]
    return [
        Write("create", "ann", _pod_template(twice)),
        Write("update", "bob", _pod_template(twice[1:])),
        Write("update", "ann", _pod_template([*twice, twice[0]])),
        Write("update", "bob", _pod_template(twice[::-1])),
        Write("apply", "cid", _pod_template([{"name": "C", "value": "1"}, {"name": "B", "value": "2"}])),
        Write("apply", "cid", _pod_template([{"name": "A", "value": "3"}]), force=True),
    ]


def _pod_template(environment: list[Json]) -> Json:
    container = {"name": "c", "image": "i", "env": environment}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container]}}
    names = {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "twice", "namespace": "default"}}
    return {**names, "template": template}


def _of_faults() -> list[Script]:
    def one(spec: Any) -> Write:
        return Write("apply", "ann", widget("faults", spec))

    def built_in(**more: Any) -> Write:
        return Write("apply", "ann", {**config_map("faults"), **more})

    return [
        Script(
            "widgets",
            "faults",
            [
                one({"nothing": 1}),
                one({"replicas": "1"}),
                one({"text": 1}),
                one({"flag": "yes"}),
                one({"map": ["a"]}),
                one({"set": {"a": 1}}),
                one({"set": ["a", "a"]}),
                one({"set": [{"a": 1}]}),
                one({"set": [["a"]]}),
                one({"set": [None]}),
                one({"items": ["a"]}),
                one({"items": [None]}),
                one({"items": [{"value": 1}]}),
                one({"items": [{"name": "a"}, {"name": "a"}]}),
                one({"ports": [{"port": 1}, {"port": 1, "protocol": "TCP"}]}),
                one({"ports": [{}]}),
                one({"items": [{"name": "a", "ports": [{"port": 1, "hosts": "x"}]}]}),
                one({"struct": "x"}),
                one("x"),
                one({"list": [1]}),
                one({"either": {"a": 1}}),
                one({"replicas": {"a": [1, 2.5, None, True]}}),
                one({"text": {"a": [1, 2.5, None, True, "t"]}}),
                Write("apply", "ann", {**widget("faults", {}), "kind": "Gadget"}),
                Write("apply", "ann", {**widget("faults", {}), "apiVersion": "v1"}),
                Write("apply", "ann", widget("faults", {}, managedFields=[])),
                Write("apply", "ann", widget("faults", {}, managedFields=[{}])),
            ],
        ),
        Script(
            "configmaps",
            "faults",
            [
                built_in(data={"a": 1}),
                built_in(data=[1]),
                built_in(more=1),
                built_in(immutable="x"),
                built_in(metadata={"name": "faults", "labels": {"a": True}}),
                built_in(metadata={"name": "faults", "finalizers": ["a", "a"]}),
                built_in(metadata={"name": "faults", "creationTimestamp": 3}),
            ],
        ),
    ]


def _of_kinds() -> list[Script]:
    """The creation of an object of every common kind, and an apply on it."""
    return [
        Script(
            plural, "sample", [Write("create", "ann", sample(plural, more)), Write("apply", "bob", labelled(plural))]
        )
        for plural, more in SAMPLES.items()
    ]
