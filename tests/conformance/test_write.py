"""create, replace, patch, delete, status and scale."""

import logging
from typing import Any

import pytest

from gadgets import GADGET, Gadget, GadgetSpec, GadgetStatus, config_map, installed
from navarch.api import Dynamic, ObjectMeta
from navarch.client import Client, JsonPatch, MergePatch, MetadataOnly, Preconditions, StrategicPatch
from navarch.errors import AlreadyExists, BadRequest, Conflict, Invalid, NotFound
from navarch.k8s.apps.v1 import Deployment, ReplicaSet
from navarch.k8s.core.v1 import ConfigMap, Pod, Secret

SECRET = "aHVudGVyMg=="


def deployment(name: str = "web") -> Dynamic:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}}
    spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
    return Dynamic({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec})


async def test_create_gives_what_the_server_made(client: Client) -> None:
    """With uid and revision; a second time it is there already."""
    made = await client.create(ConfigMap(name="a", data={"k": "v"}))
    assert made.metadata.uid
    assert made.metadata.resource_version
    with pytest.raises(AlreadyExists, match="already exists"):
        await client.create(ConfigMap(name="a"))


async def test_create_makes_a_name_up(client: Client) -> None:
    """From the beginning it is given."""
    made = await client.create(ConfigMap(metadata=ObjectMeta(generate_name="a-")))
    assert made.name.startswith("a-")
    assert len(made.name) > 2


async def test_replace_writes_and_notices_a_conflict(client: Client) -> None:
    """The first writer wins; without a revision the last one does."""
    mine = await client.create(ConfigMap(name="a", data={"k": "1"}))
    theirs = mine.copy()
    mine.data = {"k": "2"}
    written = await client.replace(mine)
    assert written.metadata.resource_version != mine.metadata.resource_version
    theirs.data = {"k": "3"}
    with pytest.raises(Conflict, match="the object has been modified"):
        await client.replace(theirs)
    theirs.metadata.resource_version = ""
    assert (await client.replace(theirs)).data == {"k": "3"}


async def test_what_was_listed_can_be_replaced_and_applied(client: Client) -> None:
    """Although items of a list come without their type."""
    await client.create(config_map("a", metadata={"labels": {"x": "y"}}))
    [found] = await client.list(ConfigMap, labels={"x": "y"})
    found.data = {"k": "1"}
    assert (await client.replace(found)).data == {"k": "1"}
    [found] = await client.list(ConfigMap, labels={"x": "y"})
    found.data = {"k": "2"}
    assert (await client.apply(found, force=True)).data == {"k": "2"}


async def test_three_kinds_of_patch(client: Client) -> None:
    """Each by its own rules."""
    await client.create(deployment())
    added: Any = {"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "side:1"}]}}}}
    merged = await client.patch(Deployment, "web", StrategicPatch(added))
    assert {container.name for container in merged.spec.template.spec.containers} == {"web", "side"}
    replaced = await client.patch(Deployment, "web", MergePatch(added))
    assert [container.name for container in replaced.spec.template.spec.containers] == ["side"]
    operations = [
        {"op": "test", "path": "/spec/replicas", "value": 0},
        {"op": "replace", "path": "/spec/replicas", "value": 2},
    ]
    assert (await client.patch(Deployment, "web", JsonPatch(operations))).spec.replicas == 2
    with pytest.raises(Invalid):
        await client.patch(Deployment, "web", JsonPatch(operations))


async def test_merge_patch_removes_with_null(client: Client) -> None:
    """Null goes out here and nowhere else."""
    await client.create(config_map("a", data={"k": "v", "l": "w"}))
    assert (await client.patch(ConfigMap, "a", MergePatch({"data": {"k": None}}))).data == {"l": "w"}


async def test_metadata_is_patched_without_reading_the_rest(client: Client) -> None:
    """The answer is metadata alone."""
    await client.create(config_map("a", data={"k": "v"}))
    found = await client.patch(MetadataOnly(ConfigMap), "a", MergePatch({"metadata": {"labels": {"x": "y"}}}))
    assert found.labels == {"x": "y"}


async def test_status_and_spec_are_written_apart(client: Client) -> None:
    """Each through its own door; only the spec moves the generation."""
    await installed(client)
    made = await client.create(Gadget(name="a", spec=GadgetSpec(size=1), status=GadgetStatus(phase="Early")))
    assert (made.status.phase, made.metadata.generation) == (None, 1)
    made.spec.size, made.status.phase = 2, "Ready"
    status = await client.replace_status(made)
    assert (status.spec.size, status.status.phase, status.metadata.generation) == (1, "Ready", 1)
    status.spec.size, status.status.phase = 3, "Lost"
    spec = await client.replace(status)
    assert (spec.spec.size, spec.status.phase, spec.metadata.generation) == (3, "Ready", 2)
    patched = await client.patch(Gadget, "a", MergePatch({"status": {"phase": "Patched"}}), subresource="status")
    assert (patched.status.phase, patched.metadata.generation) == ("Patched", 2)


async def test_scale_is_read_and_written(client: Client) -> None:
    """Of a built-in kind and of one's own; a dry run changes nothing."""
    await installed(client)
    await client.create(deployment())
    await client.create(Gadget(name="a", spec=GadgetSpec(replicas=1)))
    for kind in (Deployment, Gadget):
        name = "web" if kind is Deployment else "a"
        assert (await client.using(dry_run=True).scale(kind, name, 7)).spec.replicas == 7
        assert (await client.scale(kind, name, 3)).spec.replicas == 3
        assert (await client.get_scale(kind, name)).spec.replicas == 3


async def test_dry_run_keeps_nothing(client: Client) -> None:
    """Of any write; what it would have done is the answer."""
    await client.create(config_map("kept", data={"k": "v"}))
    dry = client.using(dry_run=True)
    assert (await dry.create(ConfigMap(name="a"))).metadata.uid
    assert (await dry.apply(ConfigMap(name="b"))).metadata.uid
    assert (await dry.patch(ConfigMap, "kept", MergePatch({"data": {"k": "w"}}))).data == {"k": "w"}
    await dry.delete(ConfigMap, "kept")
    await dry.delete_all(ConfigMap)
    found = {item.name: item.data for item in await client.list(ConfigMap)}
    assert "a" not in found
    assert "b" not in found
    assert found["kept"] == {"k": "v"}


async def test_unknown_field_is_refused_by_default(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    """Warn logs it once, Ignore says nothing, both drop it."""
    await installed(client)
    odd = Dynamic(
        {"apiVersion": "test.example.com/v1", "kind": "Gadget", "metadata": {"name": "a"}, "spec": {"sise": 1}}
    )
    with pytest.raises(BadRequest, match=r'unknown field "spec\.sise"'):
        await client.create(odd)
    with pytest.raises(NotFound):
        await client.get(GADGET, "a")
    lenient = client.using(field_validation="Warn", dry_run=True)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert (await lenient.create(odd))["spec"] == {}
    assert [record.getMessage() for record in caplog.records] == ['API server: unknown field "spec.sise"']
    assert (await client.using(field_validation="Ignore").create(odd))["spec"] == {}
    assert len(caplog.records) == 1


async def test_invalid_object_is_refused_field_by_field(client: Client) -> None:
    """Every fault, not only the first."""
    wrong = deployment()
    wrong["spec"]["replicas"] = -1
    wrong["spec"]["template"]["spec"]["containers"][0]["name"] = "NOT_A_NAME"
    with pytest.raises(Invalid) as caught:
        await client.create(wrong)
    assert {cause.field for cause in caught.value.causes} >= {"spec.replicas", "spec.template.spec.containers[0].name"}


@pytest.mark.parametrize("patch", [MergePatch({"foo": 1}), MergePatch({"data": {"b": 1}}), JsonPatch([{"op": "add", "path": "/foo", "value": 1}]),
                                   StrategicPatch({"data": SECRET}), MergePatch({"type": SECRET})])  # fmt: skip
async def test_refused_patch_of_a_secret_does_not_show_it(client: Client, patch: Any) -> None:
    """The server quotes the whole object back; the error does not, nor do its causes."""
    await client.create(
        Dynamic({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"a": SECRET}})
    )
    with pytest.raises(Invalid) as caught:
        await client.patch(Secret, "s", patch)
    shown = f"{caught.value} {caught.value!r} {caught.value.causes}"
    assert SECRET not in shown
    assert "Invalid value: (left out)" in shown


async def test_delete_that_is_done_gives_nothing(client: Client) -> None:
    """And a second one finds nothing."""
    await client.create(ConfigMap(name="a"))
    assert await client.delete(ConfigMap, "a") is None
    with pytest.raises(NotFound):
        await client.delete(ConfigMap, "a")


async def test_delete_that_waits_for_a_finalizer_gives_the_object(client: Client) -> None:
    """With the time at which it was asked to go; it goes with the finalizer."""
    await client.create(ConfigMap(metadata=ObjectMeta(name="a", finalizers=["test.example.com/wait"])))
    going = await client.delete(ConfigMap, "a")
    assert going is not None
    assert going.metadata.deletion_timestamp is not None
    going.metadata.finalizers = []
    await client.replace(going)
    with pytest.raises(NotFound):
        await client.get(ConfigMap, "a")


async def test_delete_of_metadata_gives_metadata(client: Client) -> None:
    """Where the object waits for something."""
    await client.create(ConfigMap(metadata=ObjectMeta(name="a", finalizers=["test.example.com/wait"])))
    going = await client.delete(MetadataOnly(ConfigMap), "a")
    assert going is not None
    assert going.kind == "PartialObjectMetadata"
    await client.patch(ConfigMap, "a", MergePatch({"metadata": {"finalizers": None}}))


async def test_delete_goes_ahead_only_if_the_object_is_still_the_same(client: Client) -> None:
    """By uid and by revision."""
    made = await client.create(ConfigMap(name="a"))
    for wrong in (Preconditions(uid="other"), Preconditions(resource_version="1")):
        with pytest.raises(Conflict, match=r"[Pp]recondition"):
            await client.delete(ConfigMap, "a", preconditions=wrong)
    right = Preconditions(uid=made.metadata.uid, resource_version=made.metadata.resource_version)
    assert await client.delete(ConfigMap, "a", preconditions=right) is None


async def test_grace_period_is_handed_on(client: Client) -> None:
    """A pod that was never on a node goes at once; without grace too."""
    pod = {"serviceAccountName": "none", "containers": [{"name": "a", "image": "a"}]}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": pod}
    await client.create(Dynamic({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "none"}}))
    await client.create(Dynamic(body))
    await client.delete(Pod, "p", grace_seconds=0)
    with pytest.raises(NotFound):
        await client.get(Pod, "p")


@pytest.mark.parametrize("propagation", ["Background", "Foreground", "Orphan"])
async def test_propagation_is_handed_on(client: Client, propagation: Any) -> None:
    """Foreground and Orphan leave it to the garbage collector, by a finalizer."""
    await client.create(deployment())
    going = await client.delete(Deployment, "web", propagation=propagation)
    finalizers = going.metadata.finalizers if going else []
    expected = {"Background": [], "Foreground": ["foregroundDeletion"], "Orphan": ["orphan"]}
    assert finalizers == expected[propagation]


async def test_delete_all_takes_only_what_matches(client: Client) -> None:
    """In one namespace."""
    for name, colour in (("a", "red"), ("b", "red"), ("c", "blue")):
        await client.create(ConfigMap(name=name, labels={"colour": colour}))
    await client.delete_all(ConfigMap, labels={"colour": "red"})
    assert [item.name for item in await client.list(ConfigMap, labels="colour")] == ["c"]
    await client.delete_all(ReplicaSet)
