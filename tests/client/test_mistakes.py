"""Mistakes that are easily made: each is told at once, with the remedy, and nothing is sent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from navarch import connect, errors
from navarch.api import Model, Resource
from navarch.api.unknown_fields import check_sendable
from navarch.client import Client, Config, JsonPatch, MetadataOnly
from navarch.k8s.admissionregistration.v1 import (
    ValidatingWebhook,
    ValidatingWebhookConfiguration,
    WebhookClientConfig,
)
from navarch.k8s.core.v1 import ConfigMap, Secret
from navarch.k8s.meta.v1 import LabelSelector
from scripted import answer, refusal, scripted

TEXT: Any = {"p": "hunter22"}
CONFIG = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}}


class Ratios(Model):
    ratios: dict[str, tuple[float, ...]] = {}


class Scales(Resource[Ratios, None], group="example.com", version="v1"): ...


def scales(ratio: float) -> Scales:
    return Scales(name="s", spec=Ratios(ratios={"a": (ratio,)}))


@pytest.mark.parametrize(
    ("call", "remedy"),
    [
        (lambda client: client.apply(CONFIG), "wrap it: Dynamic"),
        (lambda client: client.apply(ConfigMap), r"got the class ConfigMap; write ConfigMap\(name="),
        (lambda client: client.replace(LabelSelector()), "give the object that it is a part of"),
        (lambda client: client.install(ConfigMap), "install.navarch.schema.crd"),
        (lambda client: client.install({"kind": "ConfigMap"}), "got 'ConfigMap'; write install.navarch.schema.crd"),
        (lambda client: client.patch(ConfigMap, "a", {"data": {}}), "wrap it: MergePatch"),
        (lambda client: client.list(ConfigMap, labels=["app"]), "expected a selector"),
        (lambda client: client.list(ConfigMap, page_size=-1), "expected a page size"),
        (lambda client: client.create(Secret(name="s", data=TEXT)), r"bytes in data\['p'\], got text"),
        (lambda client: client.apply(scales(float("nan"))), r"hold in spec\.ratios\['a'\]\[0\], got nan; leave"),
        (lambda client: client.using(timeout=float("inf")), "timeout as a number of seconds above 0, got inf"),
        (lambda client: client.using(timeout=0), "timeout as a number of seconds above 0, got 0"),
        (lambda client: client.using(timeout="5"), "timeout as a number of seconds above 0, got '5'"),
    ],
)
async def test_mistake_is_told_before_anything_is_sent(call: Callable[[Any], Any], remedy: str) -> None:
    """The script is empty: a request would fail the test."""
    client, _ = scripted()
    with pytest.raises(errors.InvalidValueError, match=remedy) as caught:
        await call(client)
    assert "hunter22" not in str(caught.value)


def test_bytes_are_looked_for_at_any_depth() -> None:
    """In lists of structs, too."""
    client_config = WebhookClientConfig(url="https://a", ca_bundle="text")  # type: ignore[arg-type]  # the mistake
    webhook = ValidatingWebhook(
        name="h", client_config=client_config, side_effects="None", admission_review_versions=["v1"]
    )
    with pytest.raises(errors.InvalidValueError, match=r"webhooks\[0\]\.client_config\.ca_bundle"):
        check_sendable(ValidatingWebhookConfiguration(name="w", webhooks=[webhook]))


@pytest.mark.parametrize(
    ("operations", "fault"),
    [
        ({}, "expected a list of operations, got dict"),
        ([{"opp": "add"}], "expected operation 0 as .*, got no op of add, remove"),
        ([{"op": "remove", "path": "/a"}, {"op": "add", "path": "/a"}], "operation 1 .* got 'add' without value"),
        ([{"op": "move", "path": "/a"}], "without from"),
    ],
)
def test_json_patch_that_is_none_is_refused(operations: Any, fault: str) -> None:
    """A server would say "due to an error in our request"."""
    with pytest.raises(errors.PatchError, match=fault):
        JsonPatch(operations)


async def test_metadata_alone_cannot_be_written() -> None:
    """It would replace the object with nothing."""
    partial = {"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": {"name": "a"}}
    client, _ = scripted(answer(partial))
    found = await client.get(MetadataOnly(ConfigMap), "a")
    with pytest.raises(errors.InvalidValueError, match="its metadata alone; patch it"):
        await client.replace(found)


async def test_missing_subresource_is_named() -> None:
    """ "could not find the requested resource" alone does not tell which."""
    client, _ = scripted(refusal(404, "NotFound", "the server could not find the requested resource"))
    with pytest.raises(errors.NotFound, match="replace status of configmaps default/a: the server could not find"):
        await client.replace_status(ConfigMap(name="a"))


def test_path_is_no_configuration() -> None:
    """The remedy is the call that reads it."""
    path: Any = "/etc/kubeconfig"
    with pytest.raises(errors.ConfigError, match=r"connect\(load\('/etc/kubeconfig'\)\)"):
        connect(path)


def test_client_belongs_to_one_event_loop() -> None:
    """A second asyncio.run with the same client is told so; its connections died with the first."""

    async def use(client: Client) -> None:
        await client.get(ConfigMap, "a")

    client = connect(Config(server="http://127.0.0.1:1", timeout=0.1))
    with pytest.raises(errors.ConnectError):
        asyncio.run(use(client))
    with pytest.raises(errors.ClosedError, match="the event loop in which the client was first used, got another"):
        asyncio.run(use(client))
    asyncio.run(client.close())


async def test_client_cannot_be_used_after_its_end(reaching: Any) -> None:
    """Its connections would never be closed."""
    async with reaching("http://127.0.0.1:1") as client:
        pass
    with pytest.raises(errors.ClosedError, match="inside its `async with`"):
        await client.get(ConfigMap, "a")


async def test_update_reads_again_after_a_conflict() -> None:
    """The change is made to what is there then, not to what was there first."""
    first = {**CONFIG, "data": {"n": "1"}}
    second = {**CONFIG, "data": {"n": "2", "other": "kept"}}
    client, transport = scripted(answer(first), refusal(409, "Conflict", "changed"), answer(second), answer(second))
    seen = []

    def change(found: ConfigMap) -> None:
        seen.append(dict(found.data or {}))
        found.data = {**(found.data or {}), "mine": "yes"}

    await client.update(ConfigMap, "a", change)
    assert seen == [{"n": "1"}, {"n": "2", "other": "kept"}]
    body = transport.requests[-1].body
    assert body is not None
    assert b'"other":"kept"' in body


async def test_update_by_a_coroutine_is_refused() -> None:
    """It would write back what was read, and nobody would notice."""

    async def change(found: ConfigMap) -> None:
        found.data = {"a": "b"}

    client, transport = scripted(answer(CONFIG))
    with pytest.raises(errors.InvalidValueError, match="expected change as a plain function, got a coroutine"):
        await client.update(ConfigMap, "a", change)
    assert [request.method for request in transport.requests] == ["GET"]


async def test_update_gives_up_at_the_time_limit() -> None:
    """The last conflict is the answer then."""
    conflicts = [step for _ in range(200) for step in (answer(CONFIG), refusal(409, "Conflict", "changed"))]
    client, _ = scripted(*conflicts)
    with pytest.raises(errors.Conflict):
        await client.using(timeout=5).update(ConfigMap, "a", lambda _: None)
