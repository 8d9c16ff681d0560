"""What is refused of webhook configurations, admission policies and definitions, and in which fields."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gadgets import CONFIG_MAP
from navarch.api import Dynamic
from navarch.client import Client, MergePatch, Request, Transport
from navarch.errors import Invalid
from navarch.k8s.batch.v1 import Job
from navarch.k8s.core.v1 import ConfigMap
from schema.cel.tables import told

_ADMISSION = "admissionregistration.k8s.io/v1"
_RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}


def _webhook(**changes: Any) -> Dynamic:
    hook = {
        "name": "hook.example.com",
        "clientConfig": {"url": "https://example.com"},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "rules": [_RULE],
    }
    head = {"apiVersion": _ADMISSION, "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "refused"}}
    return Dynamic({**head, "webhooks": [{**hook, **changes}]})


def _policy(**spec: Any) -> Dynamic:
    head = {"apiVersion": _ADMISSION, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "refused"}}
    return Dynamic({**head, "spec": spec})


def _binding(**spec: Any) -> Dynamic:
    head = {"apiVersion": _ADMISSION, "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": "refused"}}
    return Dynamic({**head, "spec": spec})


@pytest.mark.parametrize(
    ("refused", "fields"),
    [
        (_webhook(name="short"), {"webhooks[0].name"}),
        (_webhook(rules=[{**_RULE, "resources": ["*", "pods"]}]), {"webhooks[0].rules[0].resources"}),
        (_webhook(rules=[{**_RULE, "apiVersions": [""]}]), {"webhooks[0].rules[0].apiVersions[0]"}),
        (_webhook(matchConditions=[{"name": "", "expression": "true"}]), {"webhooks[0].matchConditions[0].name"}),
        (_policy(), {"spec.matchConstraints", "spec.validations", "spec.auditAnnotations"}),
        (
            _policy(matchConstraints={"resourceRules": [_RULE]}, validations=[{"expression": "true", "reason": "Odd"}]),
            {"spec.validations[0].reason"},
        ),
        (_binding(), {"spec.policyName", "spec.validationActions"}),
        (_binding(policyName="p", validationActions=["Deny", "Warn"]), {"spec.validationActions"}),
    ],
)
async def test_what_makes_no_sense_is_refused(client: Client, refused: Dynamic, fields: set[str]) -> None:
    """By the fields in which it makes none."""
    with pytest.raises(Invalid) as error:
        await client.create(refused)
    assert {cause.field for cause in error.value.causes} == fields


_POD = {"containers": [{"name": "main", "image": "x"}]}
_VOLUMES = "/api/v1/persistentvolumes"


async def _said(client: Client, path: str, kind: str, spec: dict[str, Any]) -> str:
    version = "v1" if path == _VOLUMES else "apps/v1"
    given = {"apiVersion": version, "kind": kind, "metadata": {"name": "refused"}, "spec": spec}
    return str((await _refusal(client, path, given))["message"])


async def _refusal(client: Client, path: str, given: dict[str, Any]) -> dict[str, Any]:
    """The server's own words: a client leaves values out of them."""
    kept: list[Transport] = []

    def keep(transport: Transport) -> Transport:
        kept.append(transport)
        return transport

    client.through(keep)
    headers = {"Content-Type": "application/json"}
    request = Request(method="POST", path=path, headers=headers, body=json.dumps(given).encode())
    answer = await kept[0].send(request)
    try:
        assert answer.status == 422
        found: dict[str, Any] = json.loads(await answer.read())
        return found
    finally:
        await answer.close()


@pytest.mark.parametrize(("given", "shown"), [({"capacity": {}}, "{}"), ({}, "null")])
async def test_volume_of_no_size_is_refused(client: Client, given: dict[str, Any], shown: str) -> None:
    """One without a size and one whose sizes are empty are told apart."""
    spec = {"accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}, **given}
    said = await _said(client, _VOLUMES, "PersistentVolume", spec)
    assert f'spec.capacity: Unsupported value: {shown}: supported values: "storage"' in said


@pytest.mark.parametrize(("metadata", "shown"), [({"labels": {}}, "{}"), ({}, "null")])
async def test_template_without_labels_is_refused(client: Client, metadata: dict[str, Any], shown: str) -> None:
    """Also here."""
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": metadata, "spec": _POD}}
    for kind in ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"):
        path = f"/apis/apps/v1/namespaces/{client.options.namespace}/{kind.lower()}s"
        said = await _said(client, path, kind, spec)
        assert f"spec.template.metadata.labels: Invalid value: {shown}: `selector` does not match template" in said


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("nope", "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"),
        ("fe80::0042", 'must be in canonical form ("fe80::42")'),
        ("010.0.0.1", "must not have leading 0s"),
        ("::ffff:1.2.3.4", "must not be an IPv4-mapped IPv6 address"),
        ("fe80::42", ""),
    ],
)
async def test_name_of_an_ip_address_is_the_address(client: Client, name: str, why: str) -> None:
    """As everybody would write it."""
    parent = {"parentRef": {"resource": "services", "name": "web", "namespace": "default"}}
    given = Dynamic(
        {"apiVersion": "networking.k8s.io/v1", "kind": "IPAddress", "metadata": {"name": name}, "spec": parent}
    )
    if not why:
        assert (await client.using(dry_run=True).create(given)).name == name
        return
    with pytest.raises(Invalid) as refused:
        await client.using(dry_run=True).create(given)
    assert [cause.message for cause in refused.value.causes] == [f'Invalid value: "{name}": {why}']


def _indexed_job(name: str, completions: int) -> Dynamic:
    template = {"spec": {**_POD, "restartPolicy": "Never"}}
    spec = {"completionMode": "Indexed", "completions": completions, "suspend": True, "template": template}
    return Dynamic({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec})


async def test_indexed_job_needs_names_for_its_pods(client: Client) -> None:
    """The last index counts."""
    name = "a" * 61
    await client.using(dry_run=True).create(_indexed_job(name, 10))
    with pytest.raises(Invalid) as refused:
        await client.using(dry_run=True).create(_indexed_job(name, 11))
    why = f'Invalid value: "{name}": will not able to create pod with invalid DNS label: {name}-10'
    assert [cause.message for cause in refused.value.causes] == [why]


async def test_indexed_job_grows_with_its_parallelism(client: Client) -> None:
    """Not without it."""
    await client.create(_indexed_job("grows", 2))
    with pytest.raises(Invalid) as refused:
        await client.patch(Job, "grows", MergePatch({"spec": {"completions": 3}}))
    assert ["tandem with spec.parallelism" in cause.message for cause in refused.value.causes] == [True]
    grown = await client.patch(Job, "grows", MergePatch({"spec": {"completions": 3, "parallelism": 3}}))
    assert grown.spec.completions == 3


async def test_self_link_is_shown_and_not_kept(client: Client) -> None:
    """By a dry run alone."""
    await client.create(ConfigMap(name="linked"))
    change = MergePatch({"metadata": {"selfLink": "/x"}})
    shown = await client.using(dry_run=True).patch(CONFIG_MAP, "linked", change)
    assert shown["metadata"]["selfLink"] == "/x"
    assert "selfLink" not in (await client.patch(CONFIG_MAP, "linked", change))["metadata"]


async def test_rules_that_do_not_compile_are_told_in_the_words_of_cel(client: Client) -> None:
    """Each with what is wrong in it, and where."""
    rules = [{"rule": rule, "message": "no"} for rule, _ in told.RULES]
    schema = {"type": "object", "properties": {"spec": {**told.SCHEMA, "x-kubernetes-validations": rules}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "rules", "kind": "Rule"}
    spec = {"group": "cel.example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    head = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    given = {**head, "metadata": {"name": "rules.cel.example.com"}, "spec": spec}
    refusal = await _refusal(client, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", given)
    found = {
        each["field"]: each["message"].split('"OptionalOldSelf":null}: ')[1] for each in refusal["details"]["causes"]
    }
    path = "spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations"
    wanted = {f"{path}[{index}].rule": faults for index, (_, faults) in enumerate(told.RULES)}
    assert {field: told.heads(said) for field, said in found.items()} == wanted
