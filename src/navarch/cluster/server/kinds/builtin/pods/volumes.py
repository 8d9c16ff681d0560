"""Checks of volumes and of the files that they project."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from navarch.api.names import DNS_LABEL, DNS_SUBDOMAIN
from navarch.cluster.server.kinds.builtin.generic.checks import choice, exactly_one, named, required_name, unique
from navarch.cluster.server.kinds.builtin.pods.containers import check_field_reference, check_local_path
from navarch.cluster.server.objects.metadata import key_faults, selector_faults
from navarch.cluster.server.wire.request import Json
from navarch.cluster.server.wire.status_causes import forbidden, invalid, required, too_long, unsupported
from navarch.errors import Cause

_HIGHEST_MODE: Final = 0o777
_FILE_FIELDS: Final = frozenset(
    {"metadata.name", "metadata.namespace", "metadata.labels", "metadata.annotations", "metadata.uid"}
)
_RESOURCES: Final = tuple(
    sorted(f"{kind}.{name}" for kind in ("limits", "requests") for name in ("cpu", "memory", "ephemeral-storage"))
)
_HUGE_PAGES: Final = ("limits.hugepages-", "requests.hugepages-")


def check_mode(source: Json, field: str, path: str) -> Iterator[Cause]:
    """Checks a file mode."""
    mode = source.get(field)
    if mode is not None and not 0 <= mode <= _HIGHEST_MODE:
        yield invalid(f"{path}.{field}", mode, "must be a number between 0 and 0777 (octal), both inclusive")


def check_file_path(text: str, field: str) -> Iterator[Cause]:
    """A path inside a volume that a node writes: names that begin with `..` are its own."""
    yield from check_local_path(text, field)
    if text.startswith("..") and not text.startswith("../"):
        yield invalid(field, text, "must not start with '..'")


def check_items(items: Any, path: str) -> Iterator[Cause]:
    """Keys of a ConfigMap or a Secret, and where they are to be."""
    for index, item in enumerate(items):
        place = f"{path}[{index}]"
        if not item.get("key"):
            yield required(f"{place}.key")
        if not item.get("path"):
            yield required(f"{place}.path")
        yield from check_file_path(item.get("path", ""), f"{place}.path")
        yield from check_mode(item, "mode", place)


def check_files(items: Any, path: str) -> Iterator[Cause]:
    """Fields of the pod, and where they are to be."""
    for item in items:
        if not item.get("path"):
            yield required(f"{path}.path")
        yield from check_file_path(item.get("path", ""), f"{path}.path")
        field, resource = item.get("fieldRef"), item.get("resourceFieldRef")
        if field is not None:
            yield from check_field_reference(field, f"{path}.fieldRef", _FILE_FIELDS)
            if resource is not None:
                yield invalid(path, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously")
        elif resource is not None:
            yield from _check_resource(resource, f"{path}.resourceFieldRef")
        else:
            yield required(path, "one of fieldRef and resourceFieldRef is required")
        yield from check_mode(item, "mode", path)


def _check_resource(reference: Json, path: str) -> Iterator[Cause]:
    resource = reference.get("resource", "")
    if not reference.get("containerName"):
        yield required(f"{path}.containerName")
    elif not resource:
        yield required(f"{path}.resource")
    elif resource not in _RESOURCES and not resource.startswith(_HUGE_PAGES):
        yield unsupported(f"{path}.resource", resource, _RESOURCES)


_SHORTEST_TOKEN: Final = 600
_LONGEST_TOKEN: Final = 2**32
_KEY_TYPES: Final = ("ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519", "RSA3072", "RSA4096")
_CERTIFICATE_PATHS: Final = ("credentialBundlePath", "keyPath", "certificateChainPath")
_SHORTEST_CERTIFICATE: Final = 3600
_LONGEST_CERTIFICATE: Final = 91 * 24 * 3600
_LONGEST_OF_KUBERNETES: Final = 24 * 3600
_LONGEST_SIGNER: Final = 253 + 1 + 253 + 1 + 63


def check_projected(projected: Json, path: str) -> Iterator[Cause]:
    """All sources of a projected volume. No two of them may put a file at the same path."""
    seen: set[str] = set()
    for index, source in enumerate(projected.get("sources") or ()):
        place = f"{path}.sources[{index}]"
        given = [name for name in _CHECKS if source.get(name) is not None]
        for name in given:
            part = source[name]
            yield from _CHECKS[name](part, f"{place}.{name}", path)
            for file in _paths(name, part):
                if file in seen:
                    yield invalid(
                        path, part.get("name", "") if name in _OF_KEYS else file, "conflicting duplicate paths"
                    )
                seen.add(file)
        if len(given) > 1:
            yield forbidden(place, "may not specify more than 1 volume type per source")


def _paths(kind: str, part: Json) -> list[str]:
    """Returns the paths of the files of a source; paths of tokens are not compared."""
    if kind in {*_OF_KEYS, "downwardAPI"}:
        return [item["path"] for item in part.get("items") or () if item.get("path")]
    if kind == "podCertificate":
        return [part[name] for name in _CERTIFICATE_PATHS if part.get(name)]
    return [part.get("path", "")] if kind == "clusterTrustBundle" else []


def _check_keys(part: Json, path: str, volume: str) -> Iterator[Cause]:  # noqa: ARG001 - sources are checked alike
    if not part.get("name"):
        yield required(f"{path}.name")
    yield from check_items(part.get("items") or (), f"{path}.items")


def _check_downward(part: Json, path: str, volume: str) -> Iterator[Cause]:  # noqa: ARG001 - sources are checked alike
    yield from check_files(part.get("items") or (), path)


def _check_token(part: Json, path: str, volume: str) -> Iterator[Cause]:
    seconds = part.get("expirationSeconds") or 0
    if seconds < _SHORTEST_TOKEN:
        yield invalid(f"{path}.expirationSeconds", seconds, "may not specify a duration less than 10 minutes")
    if seconds > _LONGEST_TOKEN:
        yield invalid(f"{path}.expirationSeconds", seconds, "may not specify a duration larger than 2^32 seconds")
    if not part.get("path"):
        yield required(f"{volume}.path")
    else:
        yield from check_file_path(part["path"], f"{volume}.path")


def _check_trust_bundle(part: Json, path: str, volume: str) -> Iterator[Cause]:  # noqa: ARG001 - sources are checked alike
    name, signer = part.get("name"), part.get("signerName")
    if name is not None and signer is not None:
        yield invalid(path, part, "only one of name and signerName may be used")
    elif name is not None:
        yield from _check_bundle_name(name, f"{path}.name")
        if part.get("labelSelector") is not None:
            said = "labelSelector must be unset if name is specified"
            yield invalid(f"{path}.labelSelector", part["labelSelector"], said)
    elif signer is not None:
        if not signer:
            yield required(f"{path}.signerName", "must be a valid signer name")
        yield from _check_signer(signer, f"{path}.signerName")
        yield from selector_faults(part.get("labelSelector"), f"{path}.labelSelector")
    else:
        yield required(path, "either name or signerName must be specified")
    if not part.get("path"):
        yield required(f"{path}.path")
    yield from check_file_path(part.get("path", ""), f"{path}.path")


def _check_bundle_name(name: str, field: str) -> Iterator[Cause]:
    if not name:
        yield required(field, "must be a valid object name")
    for said in DNS_SUBDOMAIN.faults(name.rpartition(":")[2]):
        yield invalid(field, name, f"not a valid clustertrustbundlename: {said}")


def _check_certificate(part: Json, path: str, volume: str) -> Iterator[Cause]:  # noqa: ARG001 - sources are checked alike
    signer = part.get("signerName", "")
    yield from _check_signer(signer, f"{path}.signerName")
    for key in part.get("userAnnotations") or {}:
        if "/" not in key or key_faults(key.lower()):
            yield invalid(f"{path}.userAnnotations", key, "must be a domain-prefixed key (such as 'acme.io/foo')")
    if part.get("keyType", "") not in _KEY_TYPES:
        yield unsupported(f"{path}.keyType", part.get("keyType", ""), _KEY_TYPES)
    if (seconds := part.get("maxExpirationSeconds")) is not None:
        domain, _, _ = signer.partition("/")
        is_kubernetes = domain == "kubernetes.io" or domain.endswith(".kubernetes.io")
        longest = _LONGEST_OF_KUBERNETES if is_kubernetes else _LONGEST_CERTIFICATE
        if seconds < _SHORTEST_CERTIFICATE:
            said = f"if provided, maxExpirationSeconds must be >= {_SHORTEST_CERTIFICATE}"
            yield invalid(f"{path}.maxExpirationSeconds", seconds, said)
        if seconds > longest:
            said = f"if provided, maxExpirationSeconds must be <= {longest}"
            yield invalid(f"{path}.maxExpirationSeconds", seconds, said)
    given = [name for name in _CERTIFICATE_PATHS if part.get(name)]
    for name in given:
        yield from check_file_path(part[name], f"{path}.{name}")
    if not given:
        yield required(
            path, f"specify at least one of {', '.join(_CERTIFICATE_PATHS[:2])}, and {_CERTIFICATE_PATHS[2]}"
        )


def _check_signer(signer: str, field: str) -> Iterator[Cause]:
    """`example.com/signer-name`."""
    if not signer:
        yield required(field)
        return
    domain, slash, name = signer.partition("/")
    if not slash or "/" in name:
        yield invalid(field, signer, "must be a fully qualified domain and path of the form 'example.com/signer-name'")
        return
    for label in domain.split("."):
        yield from named(label, field, DNS_LABEL.faults)
    if "." not in domain:
        yield invalid(field, domain, "should be a domain with at least two segments separated by dots")
    yield from named(name, field, DNS_SUBDOMAIN.faults)
    if len(signer) > _LONGEST_SIGNER:
        yield too_long(field, _LONGEST_SIGNER)


_OF_KEYS: Final = frozenset({"secret", "configMap"})
_CHECKS: Final[dict[str, Callable[[Any, str, str], Iterator[Cause]]]] = {
    "secret": _check_keys,
    "configMap": _check_keys,
    "downwardAPI": _check_downward,
    "serviceAccountToken": _check_token,
    "clusterTrustBundle": _check_trust_bundle,
    "podCertificate": _check_certificate,
}
"""In the order in which the server looks at them."""
_ORDER: Final = (
    "emptyDir",
    "hostPath",
    "gitRepo",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "secret",
    "nfs",
    "iscsi",
    "glusterfs",
    "flexVolume",
    "configMap",
    "rbd",
    "cinder",
    "cephfs",
    "quobyte",
    "downwardAPI",
    "fc",
    "persistentVolumeClaim",
    "azureDisk",
    "storageos",
    "projected",
    "scaleIO",
    "csi",
    "ephemeral",
    "image",
)
"""In which order the server looks for them: the first counts, more are refused."""
_REQUIRED: Final = {
    "hostPath": ("path",),
    "secret": ("secretName",),
    "configMap": ("name",),
    "persistentVolumeClaim": ("claimName",),
    "nfs": ("server", "path"),
    "csi": ("driver",),
}
_HOST_PATHS: Final = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)


def check_volumes(volumes: Any, path: str) -> Iterator[Cause]:
    """All volumes of a pod."""
    for index, volume in enumerate(volumes):
        place = f"{path}[{index}]"
        yield from required_name(volume.get("name"), f"{place}.name")
        yield from _check_source(volume, place)
    yield from unique((each.get("name"), f"{path}[{index}].name") for index, each in enumerate(volumes))


def _check_source(volume: Json, path: str) -> Iterator[Cause]:
    given = [name for name in _ORDER if name in volume]
    yield from exactly_one(given, path, "volume type")
    if not given:
        return
    kind, place = given[0], f"{path}.{given[0]}"
    source = volume[kind]
    for field in _REQUIRED.get(kind, ()):
        if not source.get(field):
            yield required(f"{place}.{field}")
    if kind == "hostPath" and source.get("path"):
        if ".." in source["path"].split("/"):
            yield invalid(f"{place}.path", source["path"], "must not contain '..'")
        yield from choice(source.get("type"), f"{place}.type", _HOST_PATHS)
    yield from check_mode(source, "defaultMode", place)
    if kind in {"secret", "configMap"}:
        yield from check_items(source.get("items") or (), f"{place}.items")
    elif kind == "downwardAPI":
        yield from check_files(source.get("items") or (), place)
    elif kind == "projected":
        yield from check_projected(source, place)
