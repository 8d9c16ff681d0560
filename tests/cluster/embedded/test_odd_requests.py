"""Whatever is asked is answered: no request is a fault of the server, and none spoils what is stored."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from example_counts import examples
from navarch.cluster.embedded.cluster import EmbeddedCluster
from navarch.cluster.server.wire.request import ApiRequest, Reply
from navarch.cluster.storage.memory import MemoryStorage

OVERLOOKED = b"an error on the server has prevented the request"
"""What the server says of an exception that nobody thought of."""
SECONDS = 30.0

_METHODS = st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "", "get"])
_WORDS = """
    api apis v1 apps namespaces default pods configmaps secrets nodes deployments scale status watch proxy log eviction
    binding token serviceaccounts rbac.authorization.k8s.io clusterroles apiextensions.k8s.io customresourcedefinitions
    things.example.com authorization.k8s.io selfsubjectaccessreviews events.k8s.io events leases coordination.k8s.io
    healthz version openapi v2 v3 metrics made .. . * %
"""
_SEGMENTS = st.sampled_from(_WORDS.split()) | st.text(max_size=5)
_PATHS = st.one_of(
    st.lists(_SEGMENTS, max_size=8).map(lambda parts: "/" + "/".join(parts)),
    st.builds("/api/v1/namespaces/default/{}/{}".format, _SEGMENTS, _SEGMENTS),
    st.builds("/apis/apps/v1/namespaces/default/deployments/{}".format, _SEGMENTS),
    st.builds("/{}".format, st.text(max_size=30)),
)
_GIVEN = """
    true false 1 0 All Strict Warn Exact NotOlderThan Foreground metadata.name=made a=b !a a, 99999999999
"""
_VALUES = st.one_of(
    st.text(max_size=8),
    st.integers().map(str),
    st.sampled_from(_GIVEN.split()),
)
_PARAMETERS = """
    watch resourceVersion resourceVersionMatch labelSelector fieldSelector limit continue timeoutSeconds dryRun pretty force
    fieldManager fieldValidation sendInitialEvents allowWatchBookmarks gracePeriodSeconds propagationPolicy orphanDependents
    verbose exclude includeObject
"""
_QUERIES = st.dictionaries(st.sampled_from(_PARAMETERS.split()), st.lists(_VALUES, min_size=1, max_size=2), max_size=4)
_TYPES = st.sampled_from(
    [
        "application/json",
        "application/yaml",
        "application/json-patch+json",
        "application/merge-patch+json",
        "application/strategic-merge-patch+json",
        "application/apply-patch+yaml",
        "application/vnd.kubernetes.protobuf",
        "text/plain",
        "",
    ]
)
_ACCEPTS = st.sampled_from(
    [
        "",
        "*/*",
        "application/yaml",
        "application/json;as=Table;g=meta.k8s.io;v=v1",
        "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
        "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
        ";;,",
    ]
)
_NAMES = """
    apiVersion kind metadata name generateName namespace labels annotations finalizers ownerReferences managedFields uid
    resourceVersion generation deletionTimestamp spec status data stringData immutable replicas selector template containers
    op path value from rules subjects roleRef group names versions scope schema openAPIV3Schema type properties
"""
_TEXTS = """
    v1 made default Pod ConfigMap Deployment apps/v1 add remove /metadata/name a/b 2030-01-01
"""
_LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8),
    st.sampled_from(_TEXTS.split()),
)
_JSON: st.SearchStrategy[Any] = st.recursive(
    _LEAVES,
    lambda below: (
        st.lists(below, max_size=3)
        | st.dictionaries(st.sampled_from(_NAMES.split()) | st.text(max_size=3), below, max_size=5)
    ),
    max_leaves=20,
)
_KINDS = st.sampled_from([("v1", "ConfigMap"), ("v1", "Pod"), ("v1", "Secret"), ("apps/v1", "Deployment")])


def _object(kind: tuple[str, str], rest: Any) -> dict[str, Any]:
    given = rest if isinstance(rest, dict) else {"spec": rest}
    return {"apiVersion": kind[0], "kind": kind[1], "metadata": {"name": "made"}, **given}


_BODIES = st.one_of(
    st.binary(max_size=40),
    _JSON.map(lambda value: json.dumps(value).encode()),
    st.builds(_object, _KINDS, _JSON).map(lambda value: json.dumps(value).encode()),
    st.builds(_object, _KINDS, _JSON).map(lambda value: json.dumps(value).encode()[:-3]),
    st.sampled_from([b"[" * 100_000, b'{"a":' * 100_000, b"a: &a [*a, *a]", b"- " * 5000]),
)


class World:
    """A cluster and the loop that it runs in, for tests that are no coroutines."""

    def __init__(self, runner: asyncio.Runner) -> None:
        self.runner = runner
        self.storage = MemoryStorage()
        self.cluster = EmbeddedCluster(self.storage)
        self.credential = {"authorization": f"Bearer {self.cluster.token}"}

    def ask(self, request: ApiRequest) -> Reply:
        return self.runner.run(self._asked(request))

    async def _asked(self, request: ApiRequest) -> Reply:
        async with asyncio.timeout(SECONDS):
            reply = await self.cluster.server.handle(request)
        if reply.stream is not None:
            await reply.stream.aclose()  # type: ignore[attr-defined]
        return reply

    def get(self, path: str) -> Any:
        reply = self.ask(ApiRequest(method="GET", path=path, headers=self.credential))
        assert reply.status == 200, reply.body
        return json.loads(reply.body)

    async def stored(self) -> dict[str, Any]:
        return {item.key: json.loads(item.value) for item in (await self.storage.page("")).items}


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with asyncio.Runner() as runner:
        world = World(runner)
        runner.run(world.cluster.__aenter__())
        yield world
        runner.run(world.cluster.__aexit__(None, None, None))


_HEADERS = st.fixed_dictionaries({"content-type": _TYPES, "accept": _ACCEPTS})


@examples(400)
@given(asked=st.builds(ApiRequest, method=_METHODS, path=_PATHS, query=_QUERIES, headers=_HEADERS, body=_BODIES))
def test_every_request_is_answered(world: World, asked: ApiRequest) -> None:
    """With what was asked for, or with a refusal: never with a fault, and in time."""
    reply = world.ask(replace(asked, headers={**asked.headers, **world.credential}))
    assert 200 <= reply.status < 600
    assert OVERLOOKED not in reply.body
    assert reply.status != 503


def test_what_is_stored_is_whole_after_that(world: World) -> None:
    """Every value is an object under its own name, and everything can be listed."""
    for key, value in world.runner.run(world.stored()).items():
        assert value["kind"]
        assert key.endswith(f"/{value['metadata']['name']}")
    for group in ("/api/v1", "/apis/apps/v1", "/apis/rbac.authorization.k8s.io/v1"):
        for resource in world.get(group)["resources"]:
            if "list" in resource["verbs"]:
                assert world.get(f"{group}/{resource['name']}")["kind"].endswith("List")
