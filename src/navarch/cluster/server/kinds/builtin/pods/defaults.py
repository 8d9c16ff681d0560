"""Defaults of pods, containers and volumes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from navarch.api.quantity import Quantity
from navarch.cluster.server.wire.request import Json

_FILE_MODE: Final = 0o644
_PROBE: Final = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_CONTAINER_LISTS: Final = ("initContainers", "containers", "ephemeralContainers")
_MODED: Final = ("configMap", "secret", "downwardAPI", "projected")
_POD_LEVEL: Final = ("cpu", "memory")


def containers_of(spec: Json) -> Iterator[Json]:
    """All its containers, of every sort."""
    for name in _CONTAINER_LISTS:
        yield from spec.get(name) or ()


def default_pod(pod: Json) -> None:
    """A pod: what templates have, and what only pods get."""
    spec = pod["spec"]
    default_pod_spec(spec)
    spec.setdefault("enableServiceLinks", True)
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        _default_requests(container.get("resources") or {})
        if spec.get("hostNetwork"):
            _default_host_ports(container)
    if limits := (spec.get("resources") or {}).get("limits"):
        _default_pod_requests(spec, limits)


def default_pod_spec(spec: Json) -> None:
    """Sets the defaults that pods and pod templates share."""
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("securityContext", {})
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("schedulerName", "default-scheduler")
    if spec.get("serviceAccountName"):
        spec["serviceAccount"] = spec["serviceAccountName"]
    elif spec.get("serviceAccount"):
        spec["serviceAccountName"] = spec["serviceAccount"]
    for container in containers_of(spec):
        _default_container(container)
    for volume in spec.get("volumes") or ():
        _default_volume(volume)


def _default_container(container: Json) -> None:
    container.setdefault("imagePullPolicy", pull_policy(container.get("image", "")))
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    for port in container.get("ports") or ():
        port.setdefault("protocol", "TCP")
    for probe in (container[name] for name in _PROBES if name in container):
        _default_probe(probe)
    for handler in (container.get("lifecycle") or {}).values():
        if isinstance(handler, dict):
            _default_http(handler)
    for variable in container.get("env") or ():
        _default_field((variable.get("valueFrom") or {}).get("fieldRef"))


def pull_policy(image: str) -> str:
    """When an image is pulled, if its container does not say: always if it is the latest.

    >>> pull_policy("nginx"), pull_policy("localhost:5000/a:1"), pull_policy("a@sha256:00")
    ('Always', 'IfNotPresent', 'IfNotPresent')
    """
    name, digest, _ = image.partition("@")
    tag = name.rpartition("/")[2].partition(":")[2]
    if not image or any(mark.isspace() for mark in image):
        return "IfNotPresent"
    return "Always" if tag == "latest" or not (tag or digest) else "IfNotPresent"


def _default_probe(probe: Json) -> None:
    for name, value in _PROBE.items():
        probe.setdefault(name, value)
    _default_http(probe)
    if (grpc := probe.get("grpc")) is not None and grpc.get("service") is None:
        grpc["service"] = ""


def _default_http(handler: Json) -> None:
    if (http := handler.get("httpGet")) is not None:
        http.setdefault("path", "/")
        http.setdefault("scheme", "HTTP")


def _default_field(reference: Json | None) -> None:
    if reference is not None:
        reference.setdefault("apiVersion", "v1")


def _default_requests(resources: Json) -> None:
    limits = resources.get("limits")
    if limits:
        resources["requests"] = {**limits, **(resources.get("requests") or {})}


def _default_host_ports(container: Json) -> None:
    for port in container.get("ports") or ():
        port.setdefault("hostPort", port["containerPort"])


def _default_pod_requests(spec: Json, limits: Json) -> None:
    """A pod's own requests: what its containers ask for together, else its limits."""
    asked: dict[str, str] = {}
    for name in _POD_LEVEL:
        amounts = [
            Quantity(amount)
            for container in spec.get("containers") or ()
            if (amount := ((container.get("resources") or {}).get("requests") or {}).get(name)) is not None
        ]
        if amounts:
            asked[name] = str(sum(amounts[1:], amounts[0]))
        elif name in limits:
            asked[name] = limits[name]
    spec["resources"]["requests"] = {**asked, **(spec["resources"].get("requests") or {})}


def _default_volume(volume: Json) -> None:
    sources = {name for name in volume if name != "name"}
    if not sources:
        volume["emptyDir"] = {}
    for name in sources & {*_MODED}:
        volume[name].setdefault("defaultMode", _FILE_MODE)
    _default_projections(volume)
    _default_claim_template(volume)
    default_volume_source(volume)


def _default_projections(volume: Json) -> None:
    for item in (volume.get("downwardAPI") or {}).get("items") or ():
        _default_field(item.get("fieldRef"))
    for source in (volume.get("projected") or {}).get("sources") or ():
        if (token := source.get("serviceAccountToken")) is not None:
            token.setdefault("expirationSeconds", 3600)
        for item in (source.get("downwardAPI") or {}).get("items") or ():
            _default_field(item.get("fieldRef"))


def _default_claim_template(volume: Json) -> None:
    template = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
    if template:
        default_claim_spec(template["spec"])


_SOURCES: Final[dict[str, Json]] = {
    "hostPath": {"type": ""},
    "iscsi": {"iscsiInterface": "default"},
    "rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "azureDisk": {"cachingMode": "ReadWrite", "fsType": "ext4", "readOnly": False, "kind": "Shared"},
    "scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
}


def default_volume_source(source: Json) -> None:
    """Fills in where the volume of a pod, or a persistent volume, comes from."""
    for name, defaults in _SOURCES.items():
        if (found := source.get(name)) is not None:
            for field, value in defaults.items():
                found.setdefault(field, value)
    if (image := source.get("image")) is not None:
        image.setdefault("pullPolicy", pull_policy(image.get("reference", "")))


def default_claim_spec(spec: Json) -> None:
    """The spec of a PersistentVolumeClaim."""
    spec.setdefault("volumeMode", "Filesystem")


def default_pod_template(value: Json) -> None:
    """A PodTemplate."""
    default_pod_spec(value["template"]["spec"])
