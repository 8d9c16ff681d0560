"""What each verb sends, and what it refuses to send."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from navarch import errors
from navarch.api import Dynamic, Kind, Object, ObjectMeta, Resource, Spec, Status
from navarch.client import ALL, JsonPatch, MergePatch, MetadataOnly, Options, Preconditions, StrategicPatch
from scripted import answer, config_map, refusal, scripted

KIND = Kind("", "v1", "ConfigMap", plural="configmaps")
NAMESPACE = Kind("", "v1", "Namespace", plural="namespaces", namespaced=False)
FOUND = answer(config_map())
SUCCESS = answer({"kind": "Status", "apiVersion": "v1", "status": "Success"})


class ConfigMap(Object, group="", version="v1", plural="configmaps", has_status=False):
    data: dict[str, str] | None = None


class WidgetSpec(Spec):
    size: int = 1


class WidgetStatus(Status):
    ready: bool = False


class Widget(Resource[WidgetSpec, WidgetStatus], group="example.com", version="v1"): ...


WIDGET = {
    "apiVersion": "example.com/v1",
    "kind": "Widget",
    "metadata": {"name": "w"},
    "spec": {"size": 1},
    "status": {},
}


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../secrets/x", "a%2fb", "a\nb", "\x00", "\ud800"])
@pytest.mark.parametrize("verb", ["get", "delete", "patch", "evict", "bind", "scale", "namespace", "create", "apply"])
async def test_name_that_would_lead_elsewhere_is_refused_before_anything_is_sent(verb: str, name: str) -> None:
    """By every verb, as a name and as a namespace; the error shows it and says what a name is."""
    client, _ = scripted()
    calls: dict[str, Any] = {
        "get": lambda: client.get(KIND, name),
        "delete": lambda: client.delete(KIND, name),
        "patch": lambda: client.patch(KIND, name, MergePatch({})),
        "evict": lambda: client.evict(name),
        "bind": lambda: client.bind(name, "n1"),
        "scale": lambda: client.scale(KIND, name, 1),
        "namespace": lambda: client.get(KIND, "a", namespace=name or ".."),
        "create": lambda: client.create(ConfigMap(name="a", namespace=name or "..")),
        "apply": lambda: client.apply(ConfigMap(name=name)),
    }
    with pytest.raises(errors.InvalidValueError) as caught:
        await calls[verb]()
    assert "expected" in str(caught.value)


@pytest.mark.parametrize("name", [None, 7])
async def test_name_that_is_no_text_never_reaches_the_collection(name: Any) -> None:
    """A delete of None must not delete everything."""
    client, _ = scripted()
    for call in (client.delete, client.get):
        with pytest.raises(errors.InvalidValueError, match="expected the name of one of configmaps"):
            await call(KIND, name)


@given(st.text())
def test_no_name_escapes_its_path(name: str) -> None:
    """Whatever is asked for stays below its collection, as one segment."""
    try:
        path = KIND.path(namespace="default", name=name)
    except errors.InvalidValueError:
        return
    below = path.removeprefix("/api/v1/namespaces/default/configmaps/")
    assert below
    assert not {"/", "?", "#"} & set(below)
    assert below.isascii()


async def test_all_namespaces_are_for_lists_only() -> None:
    """An object is in one namespace, and the API deletes from one namespace at a time."""
    client, _ = scripted()
    with pytest.raises(errors.InvalidValueError, match="expected one namespace for configmaps 'a'"):
        await client.get(KIND, "a", namespace=ALL)
    with pytest.raises(errors.InvalidValueError, match="expected one namespace to delete"):
        await client.delete_all(KIND, namespace=ALL)


async def test_cluster_scoped_kind_has_no_namespace() -> None:
    """The default namespace is not for it; one that is given is refused."""
    client, transport = scripted(answer({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "a"}}))
    await client.get(NAMESPACE, "a")
    assert transport.requests[0].path == "/api/v1/namespaces/a"
    with pytest.raises(errors.InvalidValueError, match="cluster-scoped"):
        await client.get(NAMESPACE, "a", namespace="b")


async def test_object_that_says_otherwise_is_refused() -> None:
    """A namespace in the object and another in the call is a mistake."""
    client, _ = scripted()
    with pytest.raises(errors.InvalidValueError, match="says it is in namespace 'a', got namespace='b'"):
        await client.create(ConfigMap(name="x", namespace="a"), namespace="b")


async def test_object_without_a_kind_is_refused() -> None:
    """With a class and without; the text says what is missing."""
    client, _ = scripted()
    for wrong in ({}, {"kind": "ConfigMap"}, {"apiVersion": "v1"}, {"apiVersion": "../v1", "kind": "X"}):
        with pytest.raises(errors.InvalidValueError, match="expected an object with apiVersion and kind"):
            await client.create(Dynamic({"metadata": {"name": "a"}, **wrong}))

    class Nothing(Object): ...

    with pytest.raises(errors.InvalidValueError, match="expected a class that declares a kind"):
        await client.create(Nothing(name="a"))
    with pytest.raises(errors.InvalidValueError, match="expected a class that declares a kind"):
        await client.get(Nothing, "a")


async def test_writes_are_strict_and_signed_by_default() -> None:
    """The manager of the client, strict field validation, no dry run."""
    client, transport = scripted(FOUND, manager="me")
    await client.create(ConfigMap(name="a", data={"k": "v"}))
    [sent] = transport.requests
    assert (sent.method, sent.path) == ("POST", "/api/v1/namespaces/default/configmaps")
    assert sent.query == {"fieldManager": "me", "fieldValidation": "Strict"}
    assert sent.body is not None
    assert json.loads(sent.body)["data"] == {"k": "v"}


async def test_dry_run_holds_for_every_verb_that_writes() -> None:
    """Also for subresources, whose body knows nothing of it."""
    scale = answer(
        {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": {"name": "a"}, "spec": {}, "status": {}}
    )
    client, transport = scripted(FOUND, FOUND, FOUND, FOUND, SUCCESS, SUCCESS, scale, SUCCESS, SUCCESS, dry_run=True)
    await client.create(ConfigMap(name="a"))
    await client.replace(ConfigMap(name="a"))
    await client.apply(ConfigMap(name="a"))
    await client.patch(KIND, "a", MergePatch({}))
    await client.delete(KIND, "a")
    await client.delete_all(KIND)
    await client.scale(KIND, "a", 1)
    await client.evict("a")
    await client.bind("a", "n1")
    for sent in transport.requests:
        in_body = json.loads(sent.body or b"{}").get("dryRun") == ["All"]
        assert sent.query.get("dryRun") == "All" or in_body, sent


async def test_pod_is_bound_to_a_node() -> None:
    """This very pod, if its uid is given."""
    client, transport = scripted(SUCCESS)
    await client.bind("web", "n1", namespace="shop", uid="1-2-3")
    sent = transport.requests[0]
    assert (sent.method, sent.path) == ("POST", "/api/v1/namespaces/shop/pods/web/binding")
    body = json.loads(sent.body or b"")
    assert body["metadata"] == {"name": "web", "namespace": "shop", "uid": "1-2-3"}
    assert body["target"] == {"apiVersion": "v1", "kind": "Node", "name": "n1"}


async def test_using_changes_only_what_it_says() -> None:
    """The rest, and the client itself, stay as they were."""
    client, transport = scripted(manager="me", timeout=9.0, page_size=7)
    twin = client.using(namespace="other", dry_run=True)
    before = client.options
    assert before == Options(manager="me", timeout=9.0, page_size=7)
    assert twin.options == Options(manager="me", timeout=9.0, page_size=7, namespace="other", dry_run=True)
    assert client.using().options == before
    transport.script = [FOUND, FOUND]
    await twin.get(KIND, "a")
    await client.get(KIND, "a")
    assert [sent.path.split("/")[4] for sent in transport.requests] == ["other", "default"]


async def test_using_another_time_limit_holds_for_lookups_too() -> None:
    """And what one twin has looked up, the other knows."""
    listed = answer(
        {"kind": "APIResourceList", "groupVersion": "v1",
         "resources": [{"name": "configmaps", "kind": "ConfigMap", "namespaced": True, "verbs": []}]}
    )  # fmt: skip
    client, transport = scripted(listed, FOUND, FOUND, timeout=9.0)
    await client.using(timeout=2.0).create(Dynamic(config_map()))
    await client.create(Dynamic(config_map()))
    assert [sent.timeout for sent in transport.requests] == [2.0, 2.0, 9.0]


@pytest.mark.parametrize(
    ("patch", "form", "body"),
    [
        (JsonPatch([{"op": "remove", "path": "/a"}]), "application/json-patch+json", [{"op": "remove", "path": "/a"}]),
        (MergePatch({"a": None}), "application/merge-patch+json", {"a": None}),
        (StrategicPatch({"a": [1]}), "application/strategic-merge-patch+json", {"a": [1]}),
    ],
)
async def test_patches_are_sent_in_their_own_form(patch: Any, form: str, body: Any) -> None:
    """Null is sent: it is what removes."""
    client, transport = scripted(FOUND)
    await client.patch(KIND, "a", patch, subresource="status")
    [sent] = transport.requests
    assert (sent.method, sent.path) == ("PATCH", "/api/v1/namespaces/default/configmaps/a/status")
    assert sent.headers["Content-Type"] == form
    assert json.loads(sent.body or b"") == body


async def test_apply_states_what_is_wanted_and_nothing_the_server_said() -> None:
    """No revision, uid, times or managed fields; no status but on its subresource."""
    client, transport = scripted(answer(WIDGET), answer(WIDGET))
    metadata = ObjectMeta(name="w", uid="u", resource_version="7", generation=2, labels={"a": "b"})
    widget = Widget(metadata=metadata, spec=WidgetSpec(size=3))
    await client.apply(widget, force=True)
    await client.apply(widget, subresource="status")
    first, second = (json.loads(sent.body or b"") for sent in transport.requests)
    assert first == {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "w", "labels": {"a": "b"}},
        "spec": {"size": 3},
    }
    assert second["status"] == {"conditions": [], "ready": False}
    assert transport.requests[0].query["force"] == "true"
    assert "force" not in transport.requests[1].query
    assert transport.requests[0].headers["Content-Type"] == "application/apply-patch+yaml"


async def test_what_was_listed_is_written_with_its_type() -> None:
    """Items of lists come without; an apply needs it."""
    listed = {"kind": "ConfigMapList", "metadata": {}, "items": [{"metadata": {"name": "a"}, "unknown": 1}]}
    client, transport = scripted(answer(listed), FOUND)
    [found] = await client.list(ConfigMap)
    await client.apply(found)
    assert json.loads(transport.requests[1].body or b"") == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a"},
        "unknown": 1,
    }


async def test_replace_needs_a_name_and_keeps_the_revision() -> None:
    """The revision is what makes a conflict noticed."""
    client, transport = scripted(FOUND)
    await client.replace(ConfigMap(metadata=ObjectMeta(name="a", resource_version="7")))
    assert json.loads(transport.requests[0].body or b"")["metadata"]["resourceVersion"] == "7"
    with pytest.raises(errors.InvalidValueError, match="expected a ConfigMap with a name"):
        await client.replace(ConfigMap())


async def test_delete_sends_its_options_and_tells_gone_from_going() -> None:
    """A Status means gone; an object means that it waits for something."""
    client, transport = scripted(SUCCESS, FOUND, refusal(409, "Conflict"))
    preconditions = Preconditions(uid="u", resource_version="7")
    gone = await client.delete(ConfigMap, "a", propagation="Foreground", grace_seconds=0, preconditions=preconditions)
    assert gone is None
    assert json.loads(transport.requests[0].body or b"") == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": "Foreground",
        "gracePeriodSeconds": 0,
        "preconditions": {"uid": "u", "resourceVersion": "7"},
    }
    going = await client.delete(ConfigMap, "a")
    assert going is not None
    assert going.name == "a"
    with pytest.raises(errors.Conflict):
        await client.delete(ConfigMap, "a")


async def test_metadata_only_is_asked_for_by_every_verb_that_answers_with_an_object() -> None:
    """Otherwise the whole object would come, and not fit."""
    partial = answer({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {"name": "a"}})
    client, transport = scripted(partial, partial, partial)
    what = MetadataOnly(ConfigMap)
    found = [await client.get(what, "a"), await client.patch(what, "a", MergePatch({})), await client.delete(what, "a")]
    assert [item.name for item in found if item is not None] == ["a"] * 3
    assert all("as=PartialObjectMetadata;" in sent.headers["Accept"] for sent in transport.requests)


async def test_eviction_that_the_budget_forbids_is_told_at_once() -> None:
    """A 429 is the answer here: it is not waited out."""
    client, transport = scripted(refusal(429, "TooManyRequests", "budget", retryAfterSeconds=10))
    with pytest.raises(errors.TooManyRequests, match="budget"):
        await client.evict("a")
    assert len(transport.requests) == 1
