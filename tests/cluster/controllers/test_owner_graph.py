"""The owner graph: what has to be looked at when something changes."""

from __future__ import annotations

from typing import Any

from navarch.api import Key, Kind
from navarch.cluster.controllers.garbage_collection.owner_graph import (
    FOREGROUND,
    ORPHAN,
    GraphNode,
    OwnerGraph,
    OwnerReferenceInfo,
    node_of,
)

PODS = Kind("", "v1", "Pod", plural="pods")
NODES = Kind("", "v1", "Node", plural="nodes", namespaced=False)


def node(uid: str, *owners: str, namespace: str = "default", blocks: bool = False, **fields: Any) -> GraphNode:
    """A pod whose name is its uid."""
    references = [
        OwnerReferenceInfo(api_version="v1", kind="Pod", name=owner, uid=owner, block_owner_deletion=blocks)
        for owner in owners
    ]
    return GraphNode(kind=PODS, key=Key(namespace, uid), uid=uid, owners=tuple(references), **fields)


def leaving(uid: str, finalizer: str) -> GraphNode:
    return node(uid, is_deleting=True, finalizers=(finalizer,))


def test_object_without_owners_needs_nothing() -> None:
    """Nothing is to be done for it, nor for one whose owner is there."""
    graph = OwnerGraph()
    assert graph.observe(node("owner")) == set()
    assert graph.observe(node("child", "owner")) == set()


def test_child_of_an_unknown_owner_is_looked_at() -> None:
    """Its owner may be gone; when it comes after all, nothing more is to be done."""
    graph = OwnerGraph()
    assert graph.observe(node("child", "owner")) == {"child"}
    assert graph.observe(node("owner")) == set()


def test_owner_in_another_namespace_is_no_owner() -> None:
    """Whichever of the two is seen first, the child is looked at."""
    graph = OwnerGraph()
    assert graph.observe(node("child", "owner", namespace="other")) == {"child"}
    assert graph.observe(node("owner")) == {"child"}
    child = graph.get("child")
    assert child is not None
    assert [reference.name for reference in graph.invalid(child)] == ["owner"]


def test_owner_in_no_namespace_owns_anywhere() -> None:
    """A node may own pods of all namespaces."""
    graph = OwnerGraph()
    graph.observe(GraphNode(kind=NODES, key=Key("", "n1"), uid="n1"))
    pod = GraphNode(
        kind=PODS,
        key=Key("default", "pod"),
        uid="pod",
        owners=(OwnerReferenceInfo(api_version="v1", kind="Node", name="n1", uid="n1"),),
    )
    assert graph.observe(pod) == set()
    assert list(graph.invalid(pod)) == []


def test_children_of_what_is_gone_are_looked_at() -> None:
    """All of them, and only them."""
    graph = OwnerGraph()
    for each in (node("owner"), node("one", "owner"), node("two", "owner"), node("grandchild", "one")):
        graph.observe(each)
    assert graph.forget("owner") == {"one", "two"}
    assert graph.forget("owner") == set()


def test_foreground_deletion_is_told_to_children_once() -> None:
    """The owner is looked at whenever it changes, its children when it begins."""
    graph = OwnerGraph()
    for each in (node("owner"), node("child", "owner", blocks=True), node("free", "owner")):
        graph.observe(each)
    assert graph.observe(leaving("owner", FOREGROUND)) == {"owner", "child", "free"}
    assert graph.observe(leaving("owner", FOREGROUND)) == {"owner"}
    assert [child.uid for child in graph.blocking("owner")] == ["child"]
    assert graph.forget("child") == {"owner"}


def test_owner_that_waits_hears_of_children_that_leave_it() -> None:
    """A child that no longer names it blocks it no more."""
    graph = OwnerGraph()
    graph.observe(node("child", "owner", blocks=True))
    graph.observe(leaving("owner", FOREGROUND))
    assert graph.observe(node("child")) == {"owner"}
    assert graph.blocking("owner") == []


def test_orphaning_is_the_owners_own_work() -> None:
    """Children of an owner that leaves orphans are not looked at: it looks after them itself."""
    graph = OwnerGraph()
    for each in (node("owner"), node("child", "owner")):
        graph.observe(each)
    assert graph.observe(leaving("owner", ORPHAN)) == {"owner"}


def test_node_is_read_from_metadata() -> None:
    """Everything that decides is in the metadata."""
    data = b"""{"metadata": {"name": "a", "namespace": "b", "uid": "c", "resourceVersion": "7",
        "deletionTimestamp": "2030-01-01T00:00:00Z", "finalizers": ["foregroundDeletion"],
        "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "d", "uid": "e",
                             "blockOwnerDeletion": true}]}, "spec": {"ignored": 1}}"""
    found = node_of(PODS, data)
    assert (found.key, found.uid, found.version, found.waits_for_dependents) == (Key("b", "a"), "c", "7", True)
    assert (found.owners[0].group, found.owners[0].block_owner_deletion) == ("apps", True)
