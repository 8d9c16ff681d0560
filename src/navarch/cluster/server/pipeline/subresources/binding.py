"""The endpoint `pods/binding`: assigns a pod to a node."""

from __future__ import annotations

from functools import partial
from typing import Final

from msgspec.structs import replace

from navarch.cluster.server.objects.registry import CHANGED, retry_on_conflict, stored_form
from navarch.cluster.server.pipeline.endpoints.call import ResourceCall
from navarch.cluster.server.pipeline.endpoints.options import write_options
from navarch.cluster.server.pipeline.subresources.bodies import sent, success
from navarch.cluster.server.wire.request import Json, Reply
from navarch.cluster.server.wire.status_errors import StatusError, bad_request, conflict

_BINDING: Final = "io.k8s.api.core.v1.Binding"


async def bind(call: ResourceCall) -> Reply:
    """Assigns the pod of the path to a node, if it has none."""
    options = write_options("CreateOptions", call.request)
    binding = await sent(call, _BINDING)
    if binding["metadata"].get("name") != call.info.name:
        raise bad_request("name in URL does not match name in Binding object")
    return await _bind(call, binding, options)


async def bind_by_name(call: ResourceCall) -> Reply:
    """The old way: the pod is named by the binding alone."""
    options = write_options("CreateOptions", call.request)
    binding = await sent(call, _BINDING)
    name = binding["metadata"].get("name", "")
    if _node(binding) and not name:
        raise bad_request("Name parameter required.")
    info = replace(call.info, resource="pods", subresource="binding", name=name)
    pods = call.kernel.catalog.find("", "v1", "pods")
    assert pods is not None, "pods are always served"
    return await _bind(ResourceCall(call.kernel, call.request, info, pods, call.user, call.warnings), binding, options)


async def _bind(call: ResourceCall, binding: Json, options: Json) -> Reply:
    node = _node(binding)
    attributes = await call.admitted("CREATE", binding, None, options)
    await call.validated(attributes, binding)
    await retry_on_conflict(partial(_assign, call, binding["metadata"], node))
    return success(call)


async def _assign(call: ResourceCall, wanted: Json, node: str) -> None:
    found = await call.kernel.registry.get(call.resource, call.info.namespace, call.info.name)
    _check(call, found.value, wanted)
    pod = _bound(found.value, wanted, node, call.now())
    if not call.dry_run:
        await call.kernel.registry.update(call.resource, await stored_form(call.resource, pod), found.stored)


def _node(binding: Json) -> str:
    """The node's name; the real server answers 500 where there is none."""
    target = binding.get("target") or {}
    kind, name = target.get("kind") or "", target.get("name") or ""
    if kind not in {"", "Node"}:
        said = f'target.kind: Unsupported value: "{kind}": supported values: "Node", "<empty>"'
        raise StatusError(500, "", said)
    if not name:
        raise StatusError(500, "", "target.name: Required value")
    return str(name)


def _check(call: ResourceCall, pod: Json, wanted: Json) -> None:
    name, spec, metadata = call.info.name, pod["spec"], pod["metadata"]
    for field in ("uid", "resourceVersion"):
        if wanted.get(field) and wanted[field] != metadata.get(field):
            raise conflict("", "pods/binding", name, CHANGED)
    if metadata.get("deletionTimestamp"):
        raise conflict("", "pods/binding", name, f"pod {name} is being deleted, cannot be assigned to a host")
    if spec.get("nodeName"):
        raise conflict("", "pods/binding", name, f'pod {name} is already assigned to node "{spec["nodeName"]}"')
    if spec.get("schedulingGates"):
        raise conflict("", "pods/binding", name, f"pod {name} has non-empty .spec.schedulingGates")


def _bound(pod: Json, wanted: Json, node: str, now: str) -> Json:
    """The pod on its node, with the labels and annotations of the binding."""
    metadata = {**pod["metadata"]}
    for name in ("labels", "annotations"):
        if wanted.get(name):
            metadata[name] = {**(metadata.get(name) or {}), **wanted[name]}
    condition = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": now}
    others = [each for each in pod["status"].get("conditions") or () if each.get("type") != "PodScheduled"]
    status = {name: part for name, part in pod["status"].items() if name != "nominatedNodeName"}
    return {
        **pod,
        "metadata": metadata,
        "spec": {**pod["spec"], "nodeName": node},
        "status": {**status, "conditions": [*others, condition]},
    }
