"""Why the pods of an operator do not work: causes from conditions, container states, events and last log lines.

found = await diagnose(client, release)
found[0].cause, found[0].detail, found[0].remedy
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal

import msgspec

from navarch.api import Dynamic, Kind
from navarch.client import Client
from navarch.errors import ApiError, NotFound
from navarch.project.deploy.release import Release

__all__ = ["DEPLOYMENTS", "EVENTS", "PODS", "REPLICA_SETS", "Fault", "current_pods", "diagnose", "event_time"]

DEPLOYMENTS: Final = Kind("apps", "v1", "Deployment", plural="deployments")
PODS: Final = Kind("", "v1", "Pod", plural="pods")
REPLICA_SETS: Final = Kind("apps", "v1", "ReplicaSet", plural="replicasets")
EVENTS: Final = Kind("", "v1", "Event", plural="events")
_REVISION: Final = "deployment.kubernetes.io/revision"
_TAIL: Final = 15
_LONGEST_LINE: Final = 2000
_MISSING_PERMISSIONS: Final = "to be allowed all that it declares, but it may not"

Cause = Literal[
    "image", "permissions", "crash", "memory", "probe", "quota", "scheduling", "pod security", "service account", "rollout",
    "configuration",
]  # fmt: skip
_REMEDIES: Final[dict[Cause, str]] = {
    "image": "push the image, or name the right one: navarch deploy --image; a private registry needs imagePullSecrets",
    "permissions": "the roles lag behind the code: navarch generate rbac, then navarch deploy",
    "crash": "fix the cause in the lines above; back to the last one that worked: navarch rollback",
    "memory": "raise resources.limits.memory of the Deployment with a patch in config/patches",
    "probe": "look at its log: kubectl logs -n {namespace} {pod}; /readyz names the watch or the Lease that is missing",
    "quota": "raise the ResourceQuota of namespace {namespace}, or lower requests or replicas",
    "scheduling": "add nodes, or lower what the pod requests or demands of its node",
    "pod security": "let the Deployment demand less (config/patches), or allow more by the labels of namespace {namespace}",
    "service account": "create the ServiceAccount, or deploy again: navarch deploy",
    "configuration": "create what the pod refers to, then it starts by itself",
    "rollout": "kubectl describe deployment -n {namespace} {deployment}",
}


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """One reason why the operator does not work."""

    cause: Cause
    subject: str
    """The object that has it, such as `Pod ns/name`."""
    detail: str
    remedy: str
    lines: list[str] = []
    """The last lines that the operator wrote."""

    def __str__(self) -> str:
        lines = "".join(f"\n    {line}" for line in self.lines)
        return f"{self.cause}: {self.subject}: {self.detail}{lines}\n  remedy: {self.remedy}"


async def current_pods(client: Client, release: Release) -> list[Dynamic]:
    """Returns the pods of the Deployment's newest ReplicaSet that are not being deleted."""
    sets = [*await client.list(REPLICA_SETS, namespace=release.namespace, labels=release.selector)]
    if not sets:
        return []
    newest = max(sets, key=lambda each: int((each.metadata.get("annotations") or {}).get(_REVISION) or 0))
    pods = await client.list(PODS, namespace=release.namespace, labels=release.selector)
    return [each for each in pods if _is_owned(each, newest) and not each.metadata.get("deletionTimestamp")]


def _is_owned(pod: Dynamic, owner: Dynamic) -> bool:
    return any(each.get("uid") == owner.metadata["uid"] for each in pod.metadata.get("ownerReferences") or ())


async def diagnose(client: Client, release: Release) -> list[Fault]:
    """Returns what is wrong with the operator's Deployment and pods, each cause once; nothing if all is well.

    What the user may not read, such as events or logs, is left out.
    """
    try:
        deployment = await client.get(DEPLOYMENTS, release.deployment, namespace=release.namespace)
        pods = await current_pods(client, release)
    except NotFound:
        return [_fault(release, "rollout", f"Deployment {release.namespace}/{release.deployment}", "it does not exist")]
    found = [*_of_deployment(deployment, release)]
    for pod in pods:
        found += await _of_pod(client, pod, release)
    causes: dict[tuple[str, str], Fault] = {}
    for each in found:
        causes.setdefault((each.cause, re.sub(r"[0-9a-f]{6,}", "", each.detail)), each)
    return list(causes.values())


def _fault(
    release: Release, cause: Cause, subject: str, detail: str, lines: Sequence[str] = (), *, pod: str = ""
) -> Fault:
    remedy = _REMEDIES[cause].format(namespace=release.namespace, pod=pod, deployment=release.deployment)
    return Fault(cause=cause, subject=subject, detail=" ".join(detail.split()), remedy=remedy, lines=[*lines])


# The Deployment: what keeps pods from being created


def _of_deployment(deployment: Dynamic, release: Release) -> Iterator[Fault]:
    subject = f"Deployment {release.namespace}/{release.deployment}"
    for condition in (deployment.get("status") or {}).get("conditions") or ():
        message = condition.get("message", "")
        if condition["type"] == "ReplicaFailure" and condition["status"] == "True":
            yield _fault(release, _refusal(message), subject, message)
        elif condition["type"] == "Progressing" and condition["status"] == "False":
            yield _fault(release, "rollout", subject, message)


def _refusal(message: str) -> Cause:
    """Returns why a pod was refused, from the server's sentence."""
    if "exceeded quota" in message or "failed quota" in message:
        return "quota"
    if "violates PodSecurity" in message:
        return "pod security"
    if "service account" in message or "serviceaccount" in message:
        return "service account"
    return "rollout"


# Pods


async def _of_pod(client: Client, pod: Dynamic, release: Release) -> list[Fault]:
    status = pod.get("status") or {}
    subject = f"Pod {pod.namespace}/{pod.name}"
    for condition in status.get("conditions") or ():
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return [_fault(release, "scheduling", subject, condition.get("message") or condition.get("reason", ""))]
    found = [
        fault
        for container in status.get("containerStatuses") or ()
        if (fault := await _of_container(client, pod, container, release)) is not None
    ]
    return found or await _from_events(client, pod, release)


async def _of_container(client: Client, pod: Dynamic, container: Mapping[str, Any], release: Release) -> Fault | None:
    subject = f"Pod {pod.namespace}/{pod.name}"
    waiting = (container.get("state") or {}).get("waiting") or {}
    reason = waiting.get("reason", "")
    if reason in {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "RegistryUnavailable"}:
        detail = waiting.get("message") or reason
        return _fault(release, "image", subject, f"{container.get('image') or release.image}: {detail}")
    if reason.startswith("Create") or reason == "RunContainerError":
        return _fault(release, "configuration", subject, f"{reason}: {waiting.get('message', '')}")
    ended = _ended(container)
    if ended and not container.get("ready"):
        lines = await _last_lines(
            client, pod, container, previous="running" in (container.get("state") or {}) or bool(waiting)
        )
        lines = lines or (ended.get("message") or "").splitlines()[-_TAIL:]
        if missing := _missing_permissions(lines):
            return _fault(release, "permissions", subject, missing[0], missing[1:])
        if ended.get("reason") == "OOMKilled":
            return _fault(
                release, "memory", subject, "the container was killed: it used more memory than its limit", lines
            )
        detail = (
            f"the container ended with exit code {ended.get('exitCode')} ({container.get('restartCount', 0)} restarts)"
        )
        return _fault(release, "crash", subject, detail, lines)
    return None


def _ended(container: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns how the container ended last; empty if it never did."""
    for state in ("state", "lastState"):
        if found := (container.get(state) or {}).get("terminated"):
            ended: Mapping[str, Any] = found
            return ended
    return {}


async def _last_lines(client: Client, pod: Dynamic, container: Mapping[str, Any], *, previous: bool) -> list[str]:
    try:
        text = await client.logs(
            pod.name, namespace=pod.namespace, container=container["name"], previous=previous, tail=_TAIL
        )
    except ApiError:
        return []
    return [line[:_LONGEST_LINE] for line in text.splitlines()[-_TAIL:]]


def _missing_permissions(lines: Sequence[str]) -> list[str]:
    """Returns the operator's own report of missing permissions, without the manifests; empty if there is none."""
    for number, line in enumerate(lines):
        if _MISSING_PERMISSIONS not in line:
            continue
        text = _why(line) or "\n".join(lines[number:])
        return [each.strip() for each in text.partition("\nTo grant it")[0].splitlines() if each.strip()]
    return []


def _why(line: str) -> str:
    """Returns the field `why` of a log line in JSON; empty for any other line."""
    try:
        found = msgspec.json.decode(line)
    except msgspec.DecodeError:
        return ""
    return str(found.get("why", "")) if isinstance(found, dict) else ""


def event_time(event: Mapping[str, Any]) -> str:
    """Returns when the event happened last, as text that sorts by time."""
    return str(event.get("lastTimestamp") or event.get("eventTime") or event["metadata"].get("creationTimestamp") or "")


async def _from_events(client: Client, pod: Dynamic, release: Release) -> list[Fault]:
    """Returns the failing probe of a pod that runs but is not ready."""
    status = pod.get("status") or {}
    states = status.get("containerStatuses") or ()
    if all(each.get("ready") for each in states) and states:
        return []
    try:
        events = await client.list(EVENTS, namespace=pod.namespace, fields={"involvedObject.name": pod.name})
    except ApiError:
        return []
    warnings = [each for each in events if each.get("type") == "Warning" and each.get("message")]
    if not warnings:
        return []
    last = max(warnings, key=event_time)
    subject = f"Pod {pod.namespace}/{pod.name}"
    message = str(last["message"])
    if last.get("reason") == "Unhealthy":
        lines = await _last_lines(client, pod, states[0], previous=False) if states else []
        return [_fault(release, "probe", subject, message, lines, pod=pod.name)]
    return [_fault(release, "configuration", subject, f"{last.get('reason')}: {message}")]
