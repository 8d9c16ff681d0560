"""get and metadata-only reads."""

import pytest

from gadgets import CONFIG_MAP, GADGET, Gadget, GadgetSpec, config_map, installed
from navarch.client import Client, MetadataOnly
from navarch.errors import InvalidValueError, NotFound
from navarch.k8s.core.v1 import ConfigMap, Namespace, Secret


async def test_object_is_read_as_it_was_made(client: Client) -> None:
    """By its class and without one."""
    await client.create(ConfigMap(name="a", labels={"x": "y"}, data={"k": "v"}))
    typed, dynamic = await client.get(ConfigMap, "a"), await client.get(CONFIG_MAP, "a")
    assert (typed.data, typed.labels, typed.namespace) == ({"k": "v"}, {"x": "y"}, client.options.namespace)
    assert dynamic["data"] == {"k": "v"}
    assert typed.metadata.uid == dynamic.metadata["uid"]
    assert typed.metadata.creation_timestamp is not None


async def test_custom_object_is_read_as_it_was_made(client: Client) -> None:
    """The same for a kind of one's own."""
    await installed(client)
    await client.create(Gadget(name="a", spec=GadgetSpec(size=3)))
    assert (await client.get(Gadget, "a")).spec.size == 3
    assert (await client.get(GADGET, "a"))["spec"] == {"size": 3}


async def test_secret_comes_back_as_bytes(client: Client) -> None:
    """Base64 is the wire's affair."""
    made = await client.create(Secret(name="s", data={"password": b"\x00\xff"}))
    assert made.data == {"password": b"\x00\xff"}
    assert (await client.get(Secret, "s")).data == {"password": b"\x00\xff"}


async def test_cluster_scoped_object_is_read_without_a_namespace(client: Client) -> None:
    """The client's own namespace is not for it."""
    assert (await client.get(Namespace, client.options.namespace)).status.phase == "Active"


async def test_missing_object_and_missing_kind_are_not_found(client: Client) -> None:
    """The error says which call it was."""
    with pytest.raises(NotFound, match=rf'get configmaps {client.options.namespace}/a: configmaps "a" not found'):
        await client.get(ConfigMap, "a")
    with pytest.raises(NotFound, match=r"does not serve .*nowhere\.example\.com.*is the CRD installed"):
        await client.get(type(CONFIG_MAP)("nowhere.example.com", "v1", "Thing", plural="things"), "a")


async def test_metadata_alone_is_read(client: Client) -> None:
    """Neither the data nor the spec comes over the wire."""
    await client.create(config_map("a", data={"k": "v"}, metadata={"annotations": {"b": "c"}}))
    found = await client.get(MetadataOnly(ConfigMap), "a")
    assert (found.kind, found.name, found.annotations) == ("PartialObjectMetadata", "a", {"b": "c"})
    assert (await client.get(MetadataOnly(CONFIG_MAP), "a")).metadata.uid == found.metadata.uid


@pytest.mark.parametrize("name", ["a/b", "..", "", "a%2Fb"])
async def test_name_that_is_none_is_refused_before_it_is_sent(client: Client, name: str) -> None:
    """It would be another path."""
    with pytest.raises(InvalidValueError):
        await client.get(ConfigMap, name)


@pytest.mark.parametrize("name", ["A", "a b", "ä", "x" * 300])
async def test_name_that_no_object_can_have_is_not_found(client: Client, name: str) -> None:
    """The server decides."""
    with pytest.raises(NotFound):
        await client.get(ConfigMap, name)
