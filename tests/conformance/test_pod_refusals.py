"""What is said to those who ask for logs, commands or ports that cannot be had."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from urllib.parse import parse_qs, urlsplit

import pytest

from conformance.pod_sites import Site
from conformance.test_pods import container, create, until
from navarch import errors
from navarch.api import Dynamic
from navarch.client import Client, Request, WebSocket
from navarch.k8s.core.v1 import Pod

SECONDS = 60
RBAC = {"apiVersion": "rbac.authorization.k8s.io/v1"}
V4 = "v4.channel.k8s.io"
V5 = "v5.channel.k8s.io"
TUNNEL = "SPDY/3.1+portforward.k8s.io"
CHOOSE = "a container name must be specified for pod two, choose one of: [init probe other]"
NO_HOST = "pod nowhere does not have a host assigned"
NO_UPGRADE = "Upgrade request required"
TWICE = "[]: Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified"

REFUSALS: Sequence[tuple[str, str, int, str]] = (
    ("nobody/log", "", 404, 'pods "nobody" not found'),
    ("nowhere/log", "", 204, ""),
    ("lost/log", "", 404, 'pods "ghost" not found'),
    ("two/log", "", 400, CHOOSE),
    ("web/log?container=other", "", 400, "container other is not valid for pod web"),
    ("web/log?previous=true", "", 400, 'previous terminated container "probe" in pod "web" not found'),
    ("web/log?tailLines=-1", "", 422, "tailLines: Invalid value: -1: must be greater than or equal to 0"),
    ("web/log?limitBytes=0", "", 422, "limitBytes: Invalid value: 0: must be greater than 0"),
    ("web/log?sinceSeconds=0", "", 422, "sinceSeconds: Invalid value: 0: must be greater than 0"),
    ("web/log?sinceSeconds=1&sinceTime=2020-01-01T00:00:00Z", "", 422, TWICE),
    ("web/log?stream=Stdout", "", 422, "stream: Forbidden: may not be specified"),
    ("web/log?tailLines=abc", "", 400, 'strconv.ParseInt: parsing "abc": invalid syntax'),
    ("web/log?sinceTime=yesterday", "", 400, 'cannot parse "yesterday" as "2006"'),
    ("nobody/exec?command=x&stdout=1", V5, 404, 'pods "nobody" not found'),
    ("nowhere/exec?command=x&stdout=1", V5, 400, NO_HOST),
    ("nowhere/portforward?ports=80", V4, 400, NO_HOST),
    ("lost/exec?command=x&stdout=1", V5, 404, 'pods "ghost" not found'),
    ("two/exec?command=x&stdout=1", V5, 400, CHOOSE),
    ("two/attach?stdout=1", V5, 400, CHOOSE),
    ("web/exec?command=x&stdout=1&container=other", V5, 400, "container other is not valid for pod web"),
    ("web/exec?command=x&stdout=1", "", 400, NO_UPGRADE),
    ("web/attach?stdout=1", "", 400, NO_UPGRADE),
    ("web/portforward?ports=80", "", 400, NO_UPGRADE),
    ("web/exec?command=x", V5, 400, "you must specify at least 1 of stdin, stdout, stderr"),
    ("web/exec?command=x&stdout=1", "nonsense", 403, ""),
    ("web/exec?command=x&stdout=1", TUNNEL, 403, ""),
    ("web/portforward?ports=80", V5, 403, ""),
    ("web/portforward?ports=80", "SPDY/3.1+other.k8s.io", 403, "server accepts [portforward.k8s.io]"),
    ("web/portforward", V4, 400, 'query parameter "port" is required'),
    ("web/portforward?ports=0", V4, 400, 'port "0" must be > 0'),
    (
        "web/portforward?ports=abc",
        V4,
        400,
        'cannot convert to []int32: strconv.ParseUint: parsing "abc": invalid syntax',
    ),
    ("web/portforward?ports=70000", V4, 400, 'strconv.ParseUint: parsing "70000": value out of range'),
    ("over/exec?command=x&stdout=1", V5, 500, 'container not found ("probe")'),
    ("over/attach?stdout=1", V5, 500, "container probe not found in pod over_"),
    ("over/portforward?ports=80", V4, 500, 'pod not found ("over_'),
)
"""Of a pod, with a protocol for a WebSocket or none: the code, and a part of what is said."""


@pytest.fixture
async def pods(node_client: Client) -> AsyncIterator[Client]:
    """One that runs, one that has two containers, one that is over, one without a node, one on a node that is not there.

    The last is deleted by Kubernetes after 40 s, and so is made last.
    """
    await create(node_client, "web", container("pause"))
    await create(
        node_client,
        "two",
        container("pause"),
        container("pause", name="other"),
        initContainers=[container("echo", name="init")],
    )
    await create(node_client, "over", container("echo", "x"), restartPolicy="Never")
    await create(node_client, "nowhere", container("pause"), nodeSelector={"no": "node"})
    await until(node_client, Pod, "web", "run", lambda pod: pod.status.phase == "Running")
    await until(node_client, Pod, "two", "run", lambda pod: pod.status.phase == "Running")
    await until(node_client, Pod, "over", "end", lambda pod: pod.status.phase == "Succeeded")
    await create(node_client, "lost", container("pause"), nodeName="ghost")
    yield node_client
    with suppress(errors.NotFound):
        await node_client.delete(Pod, "lost", grace_seconds=0)


async def test_refusals_are_those_of_kubernetes(site: Site, pods: Client) -> None:
    """Code and words."""
    async with asyncio.timeout(SECONDS):
        found = [(what, *await answer(site, pods, what, protocol)) for what, protocol, _, _ in REFUSALS]
    expected = [(what, code, said) for what, _, code, said in REFUSALS]
    assert [
        (what, code, said if said in text else text)
        for (what, code, text), (_, _, said) in zip(found, expected, strict=True)
    ] == expected


async def answer(site: Site, pods: Client, what: str, protocol: str) -> tuple[int, str]:
    """The code and the message."""
    parts = urlsplit(what)
    path = f"/api/v1/namespaces/{pods.options.namespace}/pods/{parts.path}"
    request = Request(method="GET", path=path, query=parse_qs(parts.query), headers={"Accept": "*/*"}, timeout=SECONDS)
    transport = site.transport
    response = await (transport.connect(request, (protocol,)) if protocol else transport.send(request))
    if isinstance(response, WebSocket):
        await response.close()
        return 101, ""
    try:
        text = (await response.read()).decode()
    finally:
        await response.close()
    return response.status, json.loads(text)["message"] if text.startswith("{") else text


async def test_get_alone_opens_nothing(site: Site) -> None:
    """A WebSocket is opened by a GET, but whoever opens it must be allowed to `create`."""
    await create(site.client, "web", container("pause"))
    await until(site.client, Pod, "web", "run", lambda pod: pod.status.phase == "Running")
    rules = [{"apiGroups": [""], "resources": ["pods/exec", "pods/attach", "pods/portforward"], "verbs": ["get"]}]
    await site.client.create(Dynamic({**RBAC, "kind": "Role", "metadata": {"name": "getter"}, "rules": rules}))
    subject = {"kind": "User", "name": "getter", "apiGroup": "rbac.authorization.k8s.io"}
    role = {"kind": "Role", "name": "getter", "apiGroup": "rbac.authorization.k8s.io"}
    binding = {"kind": "RoleBinding", "metadata": {"name": "getter"}, "subjects": [subject], "roleRef": role}
    await site.client.create(Dynamic({**RBAC, **binding}))
    async with asyncio.timeout(SECONDS), site.connect_as("getter") as getter:
        said = 'User "getter" cannot get'
        while said in (refused := await _refused(getter)):
            pass  # the real server takes a moment to learn of roles
    assert refused.endswith('pods "web" is forbidden:')  # without a reason


async def _refused(client: Client) -> str:
    with pytest.raises(errors.Forbidden) as caught:
        await client.exec("web", ["probe", "echo"])
    return str(caught.value)
