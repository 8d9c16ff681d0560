"""Pods put together from fragments, each of which is about one control of the Pod Security Standards."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from security.pod_security_server import Json

Change = Callable[[Json], None]

APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"
SECCOMP = "seccomp.security.alpha.kubernetes.io/pod"
SECCOMP_OF = "container.seccomp.security.alpha.kubernetes.io/"


def pod(*fragments: str, name: str = "pod") -> Json:
    """A pod with one container, which has nothing but what the fragments say: `hostPID`, `app:privileged`.

    A fragment with a prefix is about the container `app`, `side` or `setup`; the latter two are made by it.
    """
    made: Json = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": {}},
        "spec": {"containers": [_container("app")], "securityContext": {}},
    }
    for fragment in fragments:
        where, _, what = fragment.rpartition(":")
        if where:
            OF_CONTAINER[what](_container_of(made["spec"], where))
        else:
            OF_POD[what](made)
    return made


def _container(name: str) -> Json:
    return {"name": name, "image": "example.com/app", "securityContext": {}}


def _container_of(spec: Json, name: str) -> Json:
    field = "initContainers" if name == "setup" else "containers"
    containers = spec.setdefault(field, [])
    for each in containers:
        if each["name"] == name:
            found: Json = each
            return found
    containers.append(_container(name))
    return containers[-1]  # type: ignore[no-any-return]  # a container, as those before


def _spec(**fields: Any) -> Change:
    return lambda made: made["spec"].update(fields)


def _security(**fields: Any) -> Change:
    """Of a pod or a container."""
    return lambda made: made.get("spec", made)["securityContext"].update(fields)


def _annotation(key: str, value: str) -> Change:
    return lambda made: made["metadata"]["annotations"].update({key: value})


def _sysctl(name: str) -> Change:
    return lambda made: made["spec"]["securityContext"].setdefault("sysctls", []).append({"name": name, "value": "1"})


def _volume(**source: Any) -> Change:
    def change(made: Json) -> None:
        volumes = made["spec"].setdefault("volumes", [])
        volumes.append({"name": f"volume-{len(volumes)}", **source})

    return change


def _capabilities(field: str, *names: str) -> Change:
    def change(container: Json) -> None:
        container["securityContext"].setdefault("capabilities", {}).setdefault(field, []).extend(names)

    return change


def _field(name: str, value: Any) -> Change:
    return lambda container: container.update({name: value})


def _claim() -> Json:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}
    return {"volumeClaimTemplate": {"spec": spec}}


_BOTH: dict[str, Change] = {
    "nonRoot": _security(runAsNonRoot=True),
    "mayBeRoot": _security(runAsNonRoot=False),
    "user0": _security(runAsUser=0),
    "user1": _security(runAsUser=1),
    "seccomp": _security(seccompProfile={"type": "RuntimeDefault"}),
    "seccompLocal": _security(seccompProfile={"type": "Localhost", "localhostProfile": "profile.json"}),
    "seccompOff": _security(seccompProfile={"type": "Unconfined"}),
    "appArmor": _security(appArmorProfile={"type": "RuntimeDefault"}),
    "appArmorOff": _security(appArmorProfile={"type": "Unconfined"}),
    "seLinux": _security(seLinuxOptions={"type": "container_kvm_t", "level": "s0:c123"}),
    "seLinuxEngine": _security(seLinuxOptions={"type": "container_engine_t"}),
    "seLinuxType": _security(seLinuxOptions={"type": "spc_t"}),
    "seLinuxUser": _security(seLinuxOptions={"user": "system_u"}),
    "seLinuxRole": _security(seLinuxOptions={"role": "system_r"}),
}
OF_POD: dict[str, Change] = {
    **_BOTH,
    "hostNetwork": _spec(hostNetwork=True),
    "hostPID": _spec(hostPID=True),
    "hostIPC": _spec(hostIPC=True),
    "ownUsers": _spec(hostUsers=False),
    "sysctl0": _sysctl("kernel.shm_rmid_forced"),
    "sysctl27": _sysctl("net.ipv4.ip_local_reserved_ports"),
    "sysctl29": _sysctl("net.ipv4.tcp_keepalive_time"),
    "sysctl32": _sysctl("net.ipv4.tcp_rmem"),
    "sysctlOther": _sysctl("net.core.somaxconn"),
    "appArmorNoted": _annotation(f"{APP_ARMOR}app", "localhost/profile"),
    "appArmorNotedOff": _annotation(f"{APP_ARMOR}app", "unconfined"),
    "seccompNoted": _annotation(SECCOMP, "docker/default"),
    "seccompNotedOff": _annotation(SECCOMP, "unconfined"),
    "seccompNotedOfAppOff": _annotation(f"{SECCOMP_OF}app", "unconfined"),
    "seccompNotedOfNobody": _annotation(f"{SECCOMP_OF}nobody", "unconfined"),
    "hostPath": _volume(hostPath={"path": "/etc"}),
    "nfs": _volume(nfs={"server": "example.com", "path": "/"}),
    "iscsi": _volume(iscsi={"targetPortal": "10.0.0.1:3260", "iqn": "iqn.2001-04.com.example:storage", "lun": 0}),
    "emptyDir": _volume(emptyDir={}),
    "configMap": _volume(configMap={"name": "some"}),
    "secret": _volume(secret={"secretName": "some"}),
    "projected": _volume(projected={"sources": []}),
    "downwardAPI": _volume(downwardAPI={"items": []}),
    "claim": _volume(persistentVolumeClaim={"claimName": "some"}),
    "csi": _volume(csi={"driver": "example.com"}),
    "ephemeral": _volume(ephemeral=_claim()),
    "image": _volume(image={"reference": "example.com/image"}),
}
_HTTP = {"path": "/", "port": 80}
OF_CONTAINER: dict[str, Change] = {
    **_BOTH,
    "plain": lambda container: None,
    "privileged": _security(privileged=True),
    "unprivileged": _security(privileged=False),
    "mayEscalate": _security(allowPrivilegeEscalation=True),
    "noEscalation": _security(allowPrivilegeEscalation=False),
    "dropAll": _capabilities("drop", "ALL"),
    "dropSome": _capabilities("drop", "KILL", "CHOWN"),
    "dropLower": _capabilities("drop", "all"),
    "addBind": _capabilities("add", "NET_BIND_SERVICE"),
    "addUsual": _capabilities("add", "CHOWN"),
    "addRaw": _capabilities("add", "NET_RAW"),
    "addAll": _capabilities("add", "ALL"),
    "maskedProc": _security(procMount="Default"),
    "unmaskedProc": _security(procMount="Unmasked"),
    "port": _field("ports", [{"containerPort": 80}]),
    "hostPort": _field("ports", [{"containerPort": 80, "hostPort": 80}]),
    "probe": _field("livenessProbe", {"httpGet": _HTTP}),
    "probeOfHost": _field("livenessProbe", {"httpGet": {**_HTTP, "host": "10.0.0.1"}}),
    "readinessOfHost": _field("readinessProbe", {"tcpSocket": {"port": 80, "host": "10.0.0.1"}}),
    "startupOfHost": _field("startupProbe", {"tcpSocket": {"port": 80, "host": "::1"}}),
    "hookOfHost": _field("lifecycle", {"postStart": {"httpGet": {**_HTTP, "host": "localhost"}}}),
    "stopOfHost": _field("lifecycle", {"preStop": {"tcpSocket": {"port": 80, "host": "127.0.0.1"}}}),
}

RESTRICTED_POD = ("nonRoot", "seccomp")
RESTRICTED_CONTAINER = ("noEscalation", "dropAll")
RESTRICTED = (*RESTRICTED_POD, *(f"app:{each}" for each in RESTRICTED_CONTAINER))
"""What a pod must have for the level restricted."""

LEVELS = ("privileged", "baseline", "restricted")
VERSIONS = ("latest", *(f"v1.{minor}" for minor in (0, 7, 8, 18, 19, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30)))
VERSIONS += tuple(f"v1.{minor}" for minor in (31, 32, 33, 34, 35, 36, 99))
_NEEDS_HOST_USERS = frozenset({"hostNetwork", "hostPID", "hostIPC"})
_PROBES = frozenset({"probe", "probeOfHost", "readinessOfHost", "startupOfHost", "hookOfHost", "stopOfHost"})


def random_labels(rng: random.Random) -> dict[str, str]:
    """Labels of a namespace: mostly of a level that is enforced."""
    labels = {"enforce": rng.choice(LEVELS[1:]), "enforce_version": rng.choice(VERSIONS)}
    if rng.random() < 0.3:
        labels |= {"warn": rng.choice(LEVELS), "warn_version": rng.choice(VERSIONS)}
    if rng.random() < 0.2:
        labels["enforce"] = "privileged"
    return labels


def random_fragments(rng: random.Random) -> list[str]:
    """Fragments that the API server takes together; about half of the pods meet the level restricted but for one or two."""
    chosen = [*RESTRICTED] if rng.random() < 0.6 else []
    chosen += rng.sample([*OF_POD], rng.choice((0, 1, 1, 2, 4)))
    names = ["app", *(each for each in ("side", "setup") if rng.random() < 0.4)]
    for name in names:
        strict = RESTRICTED_CONTAINER if rng.random() < 0.7 else ()
        chosen += [f"{name}:plain", *(f"{name}:{each}" for each in strict)]
        chosen += [f"{name}:{each}" for each in rng.sample([*OF_CONTAINER], rng.choice((0, 0, 1, 1, 2)))]
    return [*_compatible(dict.fromkeys(chosen))]


def _compatible(chosen: dict[str, None]) -> dict[str, None]:
    """Without what validation would refuse beside the rest, for reasons that have nothing to do with Pod Security."""
    if any(each in chosen for each in _NEEDS_HOST_USERS):
        chosen = {each: None for each in chosen if each != "ownUsers" and not each.startswith("sysctl")}
    if "ownUsers" not in chosen:
        chosen = {each: None for each in chosen if not each.endswith(":unmaskedProc")}
    for field in ("seccomp", "appArmor"):  # an annotation must say what the field says
        if any(each.startswith(field) and "Note" in each for each in chosen):
            chosen = {each: None for each in chosen if "Note" in each or not each.rpartition(":")[2].startswith(field)}
    kept: dict[str, None] = {}
    for each in chosen:
        where, _, what = each.rpartition(":")
        if where == "setup" and what in _PROBES:
            continue
        if what == "privileged":
            kept.pop(f"{where}:noEscalation", None)
        if what == "noEscalation" and f"{where}:privileged" in chosen:
            continue
        kept[each] = None
    return kept
