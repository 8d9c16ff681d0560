"""Controls of the level restricted: each returns what a pod, or a pod template, violates of it."""

from __future__ import annotations

from typing import Final

from navarch.cluster.server.pipeline.admission.pod_security.baseline import (
    PROFILE_TYPES,
    Check,
    ControlViolation,
    Setters,
    bad_profile_types,
    containers_of,
    listed,
    named,
    security_contexts,
    security_of,
)
from navarch.cluster.server.wire.request import Json

_VOLUMES: Final = (
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
)


def unless_for_windows(check: Check) -> Check:
    """The check for pods that are not for Windows; others pass, since they must not set what it asks for."""
    return lambda pod: None if (pod["spec"].get("os") or {}).get("name") == "windows" else check(pod)


def allow_privilege_escalation(pod: Json) -> ControlViolation | None:
    """No process gains more privileges than its parent, and every container says so."""
    names = [
        each["name"] for each in containers_of(pod) if security_of(each).get("allowPrivilegeEscalation") is not False
    ]
    if not names:
        return None
    detail = f"{named('container', names)}: securityContext.allowPrivilegeEscalation must be false"
    return ControlViolation("allowPrivilegeEscalation != false", detail)


def capabilities(pod: Json) -> ControlViolation | None:
    """Every container drops all capabilities; it may keep NET_BIND_SERVICE."""
    keeping, adding = Setters(), Setters()
    for container in containers_of(pod):
        given = security_of(container).get("capabilities") or {}
        if "ALL" not in (given.get("drop") or ()):
            keeping.add(container)
        if extra := [each for each in given.get("add") or () if each != "NET_BIND_SERVICE"]:
            adding.add(container, *extra)
    details = [f'{keeping}: securityContext.capabilities.drop must have "ALL"'] if keeping else []
    if adding:
        details.append(f"{adding}: securityContext.capabilities.add must not have {listed(sorted(adding.values))}")
    return ControlViolation("unrestricted capabilities", "; ".join(details)) if details else None


def volume_types(pod: Json) -> ControlViolation | None:
    """Volumes are of types that do not reach the node, or a server, past their claims."""
    types: dict[str, list[str]] = {}
    for volume in pod["spec"].get("volumes") or ():
        given = [field for field, source in volume.items() if field != "name" and source is not None]
        if not any(field in _VOLUMES for field in given):
            types.setdefault(given[0] if given else "unknown", []).append(volume["name"])
    if not types:
        return None
    told = "; ".join(f"{named('volume', types[each])}: {each}" for each in sorted(types))
    return ControlViolation("restricted volume types", told)


def run_as_non_root(pod: Json) -> ControlViolation | None:
    """No container runs as root: the pod or every container says so, and none says otherwise."""
    of_pod = security_of(pod["spec"]).get("runAsNonRoot")
    false, unset = Setters(), Setters()
    if of_pod is False:
        false.add(None)
    for container in containers_of(pod):
        own = security_of(container).get("runAsNonRoot")
        if own is False:
            false.add(container)
        elif own is None and not of_pod:
            unset.add(container)
    if not false and not unset:
        return None
    who = str(false) if false else f"pod or {unset}"
    return ControlViolation("runAsNonRoot != true", f"{who}: securityContext.runAsNonRoot must be true")


def run_as_user(pod: Json) -> ControlViolation | None:
    """No container has the user 0."""
    setters = Setters()
    for container, context in security_contexts(pod):
        if context.get("runAsUser") == 0:
            setters.add(container)
    return ControlViolation("runAsUser=0", f"{setters}: securityContext.runAsUser must not be 0") if setters else None


def seccomp_profile(pod: Json) -> ControlViolation | None:
    """Every container has a seccomp profile, its own or the pod's, and none turns it off."""
    setters = bad_profile_types(pod, "seccompProfile")
    must = f"securityContext.seccompProfile.type must be {' or '.join(sorted(PROFILE_TYPES, reverse=True))}"
    if setters:
        return ControlViolation("seccompProfile", f"{setters}: {must}, not {listed(sorted(setters.values))}")
    if security_of(pod["spec"]).get("seccompProfile") is not None:
        return None
    names = [each["name"] for each in containers_of(pod) if security_of(each).get("seccompProfile") is None]
    return ControlViolation("seccompProfile", f"pod or {named('container', names)}: {must}") if names else None
