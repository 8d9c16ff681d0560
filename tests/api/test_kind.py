"""Kinds and the paths of their objects."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from navarch.api import Kind
from navarch.errors import DecodeError, InvalidValueError, MalformedJsonError

DEPLOYMENT = Kind("apps", "v1", "Deployment", plural="deployments")
POD = Kind("", "v1", "Pod", plural="pods")
NODE = Kind("", "v1", "Node", plural="nodes", namespaced=False)


def test_paths_are_those_of_the_api() -> None:
    """Of all objects, of a namespace's, of one, of its subresource; with a group and without."""
    assert DEPLOYMENT.path() == "/apis/apps/v1/deployments"
    assert DEPLOYMENT.path(namespace="a") == "/apis/apps/v1/namespaces/a/deployments"
    assert POD.path(namespace="a", name="b", subresource="log") == "/api/v1/namespaces/a/pods/b/log"
    assert POD.path(namespace="a", name="b", subresource="proxy/x") == "/api/v1/namespaces/a/pods/b/proxy/x"
    assert NODE.path(name="n") == "/api/v1/nodes/n"


def test_names() -> None:
    """As manifests, RBAC and messages write them."""
    assert (DEPLOYMENT.api_version, DEPLOYMENT.resource, str(DEPLOYMENT)) == (
        "apps/v1",
        "deployments.apps",
        "Deployment (apps/v1)",
    )
    assert (POD.api_version, POD.resource) == ("v1", "pods")


@pytest.mark.parametrize("wrong", ["", ".", "..", "a/b", "../b", "a%2Fb", "%2e%2e", "a\n", "\x00"])
def test_part_that_would_lead_elsewhere_is_refused(wrong: str) -> None:
    """As a name, a namespace or a subresource; it is shown, not escaped into something else."""
    with pytest.raises(InvalidValueError, match="expected the name of an object"):
        POD.path(namespace="a", name=wrong)
    if wrong:
        with pytest.raises(InvalidValueError):
            POD.path(namespace=wrong)
    if "/b" not in wrong or wrong.startswith(".."):
        with pytest.raises(InvalidValueError):
            POD.path(namespace="a", name="b", subresource=wrong)


def test_names_that_the_api_has_are_taken() -> None:
    """RBAC's have colons."""
    assert NODE.path(name="system:node:a").endswith("/system:node:a")
    assert NODE.path(name="a?b#c d") == "/api/v1/nodes/a%3Fb%23c%20d"


@given(st.text(), st.text(), st.text())
def test_path_has_as_many_parts_as_were_given(namespace: str, name: str, subresource: str) -> None:
    """Or it is refused: nothing that is given can add, drop or climb over one."""
    try:
        path = POD.path(namespace=namespace, name=name, subresource=subresource)
    except InvalidValueError:
        return
    parts = path.split("/")
    expected = 7 if namespace else 5
    assert len(parts) == expected + 1 + subresource.count("/")
    assert not {"", ".", ".."} & set(parts[1:])
    assert not {"?", "#"} & set(path)


def test_namespace_of_a_cluster_scoped_kind_is_refused() -> None:
    """It would be another path, which is not there."""
    with pytest.raises(
        InvalidValueError, match=r"nodes is cluster-scoped: expected no namespace, got 'a'; leave it out"
    ):
        NODE.path(namespace="a", name="b")


def test_object_without_a_class_gets_its_type_and_keeps_the_rest() -> None:
    """Items of lists come without."""
    found = POD.from_json(b'{"metadata":{"name":"a"},"spec":{"x":null}}')
    assert found == {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"x": None}}


def test_what_is_no_object_of_the_kind_is_refused() -> None:
    """Another kind, no object, no JSON."""
    with pytest.raises(DecodeError, match=r"expected a Pod \(v1\), got a Node \(v1\)"):
        POD.from_json(b'{"apiVersion":"v1","kind":"Node"}')
    with pytest.raises(DecodeError):
        POD.from_json(b"[]")
    with pytest.raises(MalformedJsonError):
        POD.from_json(b"<html>")
