"""Admission of what reaches into pods."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Final

import pytest

from conformance.controllers.watching import until
from navarch.api import Dynamic
from navarch.client import Client
from navarch.errors import Invalid, NotFound
from navarch.k8s.admissionregistration.v1 import ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding

ADMISSION: Final = {"apiVersion": "admissionregistration.k8s.io/v1"}

Forbid = Callable[[str, str, str], Awaitable[None]]
"""Forbids connections to a resource unless an expression holds, with the message that another one makes."""


@pytest.fixture
async def forbid(client: Client) -> AsyncIterator[Forbid]:
    """In the namespace of the test."""
    name = client.options.namespace
    named = {"metadata": {"name": name}}

    async def make(resource: str, expression: str, message: str) -> None:
        rule = {"operations": ["CONNECT"], "apiGroups": [""], "apiVersions": ["v1"], "resources": [resource]}
        checks = [{"expression": expression, "messageExpression": message}]
        spec = {"matchConstraints": {"resourceRules": [rule]}, "validations": checks}
        await client.create(Dynamic({**ADMISSION, "kind": "ValidatingAdmissionPolicy", **named, "spec": spec}))
        here = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}}}
        bound = {"policyName": name, "validationActions": ["Deny"], "matchResources": here}
        await client.create(Dynamic({**ADMISSION, "kind": "ValidatingAdmissionPolicyBinding", **named, "spec": bound}))

    yield make
    for kind in (ValidatingAdmissionPolicyBinding, ValidatingAdmissionPolicy):
        with suppress(NotFound):
            await client.delete(kind, name)


async def test_policies_see_what_is_to_be_run(client: Client, forbid: Forbid) -> None:
    """The options of the request are the object; nobody has looked for the pod yet."""
    said = "request.kind.kind + ' ' + request.operation + ' ' + object.command[1] + ' ' + string(object.stdout)"
    await forbid("pods/exec", "!('rm' in object.command)", said)

    async def refused(*command: str) -> str:
        try:
            await client.exec("nobody", list(command))
        except (Invalid, NotFound) as error:
            return str(error)
        return ""

    await until(
        lambda: refused("rm", "-r"), lambda found: "PodExecOptions CONNECT -r true" in found, "a refusal by the policy"
    )
    assert 'pods "nobody" not found' in await refused("ls")
