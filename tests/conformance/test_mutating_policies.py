"""MutatingAdmissionPolicies: CEL that changes what is written."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.controllers.watching import until
from navarch.api import ObjectMeta
from navarch.client import Client
from navarch.errors import ApiError
from navarch.k8s.admissionregistration.v1 import (
    ApplyConfiguration,
    JSONPatch,
    MatchResources,
    MutatingAdmissionPolicy,
    MutatingAdmissionPolicyBinding,
    MutatingAdmissionPolicyBindingSpec,
    MutatingAdmissionPolicySpec,
    Mutation,
    NamedRuleWithOperations,
    Variable,
)
from navarch.k8s.core.v1 import ConfigMap
from navarch.k8s.meta.v1 import LabelSelector

APPLIED = (
    """Object{metadata: Object.metadata{labels: {"size": string(size(object.data))}}, data: {"team": variables.team}}"""
)
PATCHED = """
[
  JSONPatch{op: "test", path: "/data/team", value: "blue"},
  JSONPatch{op: "add", path: "/metadata/labels/" + jsonpatch.escapeKey("example.com/team"), value: object.data.team}
]
"""


def apply(text: str) -> Mutation:
    return Mutation(patch_type="ApplyConfiguration", apply_configuration=ApplyConfiguration(expression=text))


def patch(text: str) -> Mutation:
    return Mutation(patch_type="JSONPatch", json_patch=JSONPatch(expression=text))


async def bound(client: Client, *mutations: Mutation) -> None:
    """A policy for the ConfigMaps of the test's namespace, bound."""
    namespace = client.options.namespace
    rule = NamedRuleWithOperations(
        api_groups=[""], api_versions=["v1"], operations=["CREATE"], resources=["configmaps"], scope="*"
    )
    where = MatchResources(
        resource_rules=[rule],
        namespace_selector=LabelSelector(match_labels={"kubernetes.io/metadata.name": str(namespace)}),
        object_selector=LabelSelector(match_labels={"policed": "yes"}),
    )
    spec = MutatingAdmissionPolicySpec(
        match_constraints=where,
        reinvocation_policy="Never",
        variables=[Variable(name="team", expression='"blue"')],
        mutations=list(mutations),
    )
    await client.create(MutatingAdmissionPolicy(name=f"{namespace}.example.com", spec=spec))
    of_it = MutatingAdmissionPolicyBindingSpec(policy_name=f"{namespace}.example.com")
    await client.create(MutatingAdmissionPolicyBinding(name=f"{namespace}.example.com", spec=of_it))


async def unbind(client: Client) -> None:
    name = f"{client.options.namespace}.example.com"
    await client.delete(MutatingAdmissionPolicyBinding, name)
    await client.delete(MutatingAdmissionPolicy, name)


async def dry(client: Client) -> ConfigMap | ApiError:
    """What a ConfigMap would become."""
    wanted = ConfigMap(metadata=ObjectMeta(name="one", labels={"policed": "yes"}), data={"a": "1"})
    try:
        return await client.using(dry_run=True).create(wanted)
    except ApiError as error:
        return error


async def test_policy_changes_what_is_written(client: Client) -> None:
    """It merges what it builds, and then carries out its patch, which sees that."""
    await bound(client, apply(APPLIED), patch(PATCHED))
    try:
        made: Any = await until(lambda: dry(client), is_changed, "a changed ConfigMap")
    finally:
        await unbind(client)
    assert made.data == {"a": "1", "team": "blue"}
    assert made.labels == {"policed": "yes", "size": "1", "example.com/team": "blue"}


def is_changed(found: ConfigMap | ApiError) -> bool:
    return isinstance(found, ConfigMap) and "team" in (found.data or {})


@pytest.mark.parametrize(
    ("mutation", "why"),
    [
        (apply("Object{metadata: Object.wrong{}}"), 'type mismatch: unexpected type name "Object.wrong"'),
        (apply("Object{metadata: Object.metadata{labels: {'a': object.data.none}}}"), "no such key: none"),
        (patch('[JSONPatch{op: "remove", path: "/data/none"}]'), "JSON Patch: "),
    ],
    ids=["a type that does not fit its place", "a value that is not there", "a path that is not there"],
)
async def test_policy_that_cannot_be_carried_out_refuses(client: Client, mutation: Mutation, why: str) -> None:
    """With the name of the policy and of its binding, and the cause."""
    await bound(client, mutation)
    try:
        error = await until(lambda: dry(client), lambda found: isinstance(found, ApiError), "a refusal")
    finally:
        await unbind(client)
    assert isinstance(error, ApiError)
    name = f"{client.options.namespace}.example.com"
    assert f"policy '{name}' with binding '{name}' denied request: " in str(error)
    assert why in str(error)
    assert error.code == 403
