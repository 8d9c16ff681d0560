"""TokenRequests: `serviceaccounts/token` issues a bound token."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Final

from navarch.api.strconv import go_quoted
from navarch.api.times import format_time
from navarch.cluster.server.pipeline.authentication.tokens import Bound, ServiceAccountTokens
from navarch.cluster.server.wire.request import Json
from navarch.cluster.server.wire.status_errors import bad_request, conflict, invalid, not_found
from navarch.errors import Cause

_GROUP: Final = "authentication.k8s.io"
_KIND: Final = "TokenRequest"
_HOUR: Final = 3600
_LEAST: Final = 600
_MOST: Final = 2**32
_OF_PROJECTED_VOLUMES: Final = 3607
"""The lifetime that kubelets request: such pod tokens live a year, for programs that never re-read them."""
_YEAR: Final = 365 * 24 * 3600
_RESOURCES: Final = {"Pod": "pods", "Node": "nodes", "Secret": "secrets"}


async def request_token(tokens: ServiceAccountTokens, namespace: str, name: str, body: Json) -> Json:
    """The TokenRequest with its token, for the ServiceAccount of the path; raises `StatusError`."""
    metadata: Json = {**(body.get("metadata") or {})}
    _check_identity(metadata, namespace, name)
    account = await tokens.objects.get("", "serviceaccounts", namespace, name)
    if account is None:
        raise not_found("", "serviceaccounts", name)
    _check_uid(metadata, account, name)
    spec = _completed(body.get("spec") or {}, tokens)
    if causes := list(_faults(spec["expirationSeconds"])):
        raise invalid(_GROUP, _KIND, "", causes)
    bound = await _bound(tokens, namespace, name, spec["boundObjectRef"])
    return {
        "kind": _KIND,
        "apiVersion": f"{_GROUP}/v1",
        "metadata": _filled(metadata, account, tokens),
        "spec": spec,
        "status": _status(tokens, account, bound, spec),
    }


def _check_identity(metadata: Json, namespace: str, name: str) -> None:
    if metadata.get("namespace") and metadata["namespace"] != namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    if metadata.get("name") and metadata["name"] != name:
        said = f"Invalid value: {go_quoted(metadata['name'])}: must match the service account name if specified"
        raise invalid(_GROUP, _KIND, name, [Cause("metadata.name", "FieldValueInvalid", said)])


def _check_uid(metadata: Json, account: Json, name: str) -> None:
    asked, real = metadata.get("uid"), account["metadata"]["uid"]
    if asked and asked != real:
        why = f"the UID in the token request ({asked}) does not match the UID of the service account ({real})"
        raise conflict(_GROUP, _KIND, name, why)


def _completed(spec: Json, tokens: ServiceAccountTokens) -> Json:
    seconds = spec.get("expirationSeconds")
    return {
        "audiences": list(spec.get("audiences") or tokens.audiences),
        "expirationSeconds": _HOUR if seconds is None else seconds,
        "boundObjectRef": spec.get("boundObjectRef"),
    }


def _faults(seconds: int) -> Iterator[Cause]:
    said = ""
    if seconds < _LEAST:
        said = "may not specify a duration less than 10 minutes"
    if seconds > _MOST:
        said = "may not specify a duration larger than 2^32 seconds"
    if said:
        yield Cause("spec.expirationSeconds", "FieldValueInvalid", f"Invalid value: {seconds}: {said}")


async def _bound(tokens: ServiceAccountTokens, namespace: str, name: str, reference: Json | None) -> Bound:
    if reference is None:
        return Bound()
    group, _, version = (reference.get("apiVersion") or "").rpartition("/")
    kind, of_name = reference.get("kind") or "", reference.get("name") or ""
    if group or kind not in _RESOURCES:
        raise bad_request(f"cannot bind token to object of type {group}/{version}, Kind={kind}")
    found = await tokens.objects.get("", _RESOURCES[kind], "" if kind == "Node" else namespace, of_name)
    if found is None:
        raise not_found("", _RESOURCES[kind], of_name)
    if kind == "Pod" and (found.get("spec") or {}).get("serviceAccountName", "") != name:
        raise bad_request(
            f"cannot bind token for serviceaccount {go_quoted(name)} to pod running with different serviceaccount name."
        )
    if reference.get("uid") and reference["uid"] != found["metadata"]["uid"]:
        why = (
            f"the UID in the bound object reference ({reference['uid']}) does not match the UID in record. "
            "The object might have been deleted and then recreated"
        )
        raise conflict("", kind, of_name, why)
    return await _with_node(tokens, kind, found)


async def _with_node(tokens: ServiceAccountTokens, kind: str, found: Json) -> Bound:
    if kind == "Secret":
        return Bound(secret=found)
    if kind == "Node":
        return Bound(node=found)
    node: Any = (found.get("spec") or {}).get("nodeName")
    if not node:
        return Bound(pod=found)
    known = await tokens.objects.get("", "nodes", "", node)
    return Bound(pod=found, node=known or {"metadata": {"name": node}})


def _filled(metadata: Json, account: Json, tokens: ServiceAccountTokens) -> Json:
    own = {key: account["metadata"][key] for key in ("name", "namespace", "uid")}
    return own | metadata | {**own, "creationTimestamp": format_time(tokens.clock.now())}


def _status(tokens: ServiceAccountTokens, account: Json, bound: Bound, spec: Json) -> Json:
    seconds, audiences = spec["expirationSeconds"], spec["audiences"]
    until = format_time(tokens.clock.now() + timedelta(seconds=seconds))
    if bound.pod is not None and seconds == _OF_PROJECTED_VOLUMES and set(audiences) <= set(tokens.audiences):
        token = tokens.issue(account, bound, audiences, _YEAR, warn_after=seconds)
    else:
        token = tokens.issue(account, bound, audiences, seconds)
    return {"token": token, "expirationTimestamp": until}
