"""Checks of ConfigMaps, Secrets, Namespaces and ServiceAccounts."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from typing import Final

from navarch.cluster.server.kinds.builtin.generic.checks import config_key, finalizer_name
from navarch.cluster.server.objects.metadata import immutable_faults
from navarch.cluster.server.wire.causes import forbidden, invalid, required, too_long
from navarch.cluster.server.wire.request import Json
from navarch.errors import Cause

_IMMUTABLE: Final = "field is immutable when `immutable` is set"
_NEEDED_KEYS: Final = {
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/dockercfg": (".dockercfg",),
}
_ACCOUNT: Final = "kubernetes.io/service-account.name"
_MOUNTABLE: Final = "kubernetes.io/enforce-mountable-secrets"
_MOST_DATA: Final = 2**20


def check_config_map(value: Json) -> Iterator[Cause]:
    """A ConfigMap."""
    binary = value.get("binaryData") or {}
    for key in value.get("data") or ():
        yield from config_key(key, f"data[{key}]")
        if key in binary:
            yield invalid(f"data[{key}]", key, "duplicate of key present in binaryData")
    for key in binary:
        yield from config_key(key, f"binaryData[{key}]")
    if _is_over([*(value.get("data") or {}).values()], [*binary.values()]):
        yield too_long("[]", _MOST_DATA)


def _is_over(texts: Sequence[str], encoded: Sequence[str]) -> bool:
    """Whether texts and bytes in base64 together are more than may be stored; most are so few that nobody has to count."""
    if 4 * sum(map(len, (*texts, *encoded))) <= _MOST_DATA:
        return False
    sizes = (*(len(text.encode()) for text in texts), *(len(base64.b64decode(each)) for each in encoded))
    return sum(sizes) > _MOST_DATA


def check_immutable(value: Json, old: Json) -> Iterator[Cause]:
    """A ConfigMap or Secret that was declared immutable stays as it is, and immutable."""
    if not old.get("immutable"):
        return
    if not value.get("immutable"):
        yield forbidden("immutable", _IMMUTABLE)
    for name in ("data", "binaryData"):
        if (value.get(name) or None) != (old.get(name) or None):
            yield forbidden(name, _IMMUTABLE)


def check_secret(value: Json) -> Iterator[Cause]:
    """A Secret: some types need some keys."""
    data, kind = value.get("data") or {}, value.get("type", "")
    for key in data:
        yield from config_key(key, f"data[{key}]")
    if _is_over((), [*data.values()]):
        yield too_long("data", _MOST_DATA)
    if kind == "kubernetes.io/service-account-token":
        if not (value["metadata"].get("annotations") or {}).get(_ACCOUNT):
            yield required(f"metadata.annotations[{_ACCOUNT}]")
    elif kind == "kubernetes.io/basic-auth" and not {"username", "password"} & {*data}:
        yield required("data[username]")
        yield required("data[password]")
    for key in _NEEDED_KEYS.get(kind, ()):
        if key not in data:
            yield required(f"data[{key}]")
        elif kind.startswith("kubernetes.io/dockerc"):
            yield from _check_docker(data[key], f"data[{key}]")


def _check_docker(encoded: str, field: str) -> Iterator[Cause]:
    text = base64.b64decode(encoded).decode(errors="replace").strip()
    try:
        json.loads(text)
    except ValueError:
        why = (
            f"invalid character '{text[0]}' looking for beginning of value" if text else "unexpected end of JSON input"
        )
        yield invalid(field, "<secret contents redacted>", why)


def check_secret_update(value: Json, old: Json) -> Iterator[Cause]:
    """A secret keeps its type."""
    yield from immutable_faults(value.get("type"), old.get("type"), "type")
    yield from check_immutable(value, old)


def secret_warnings(value: Json, _: Json | None) -> list[str]:
    """A pair of certificate and key that is none."""
    if value.get("type") != "kubernetes.io/tls":
        return []
    certificate = base64.b64decode((value.get("data") or {}).get("tls.crt", ""))
    return [] if b"-----BEGIN" in certificate else ["tls: failed to find any PEM data in certificate input"]


def check_namespace(value: Json) -> Iterator[Cause]:
    """A Namespace."""
    for name in value["spec"].get("finalizers") or ():
        yield from finalizer_name(name, "spec.finalizers")


def service_account_warnings(value: Json, old: Json | None) -> list[str]:
    """An annotation is on its way out."""
    had = (old or {}).get("metadata", {}).get("annotations") or {}
    if _MOUNTABLE in had or _MOUNTABLE not in (value["metadata"].get("annotations") or {}):
        return []
    why = "deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets"
    return [f"metadata.annotations[{_MOUNTABLE}]: {why}"]
