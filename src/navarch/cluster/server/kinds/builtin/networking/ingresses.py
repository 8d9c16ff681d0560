"""Checks of Ingresses and IngressClasses."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from navarch.api.names import DNS_LABEL, DNS_SUBDOMAIN
from navarch.cluster.server.kinds.builtin.generic.checks import address, named, node_port_or_name, required_name
from navarch.cluster.server.kinds.builtin.generic.strategy import path_segment_faults
from navarch.cluster.server.objects.metadata import immutable_faults
from navarch.cluster.server.wire.request import Json
from navarch.cluster.server.wire.status_causes import forbidden, invalid, required, too_long, unsupported
from navarch.errors import Cause

_PATH_TYPES: Final = ("Exact", "ImplementationSpecific", "Prefix")
_UNWANTED: Final = ("//", "/./", "/../", "%2f", "%2F")
_UNWANTED_ENDS: Final = ("/..", "/.")
_CLASS: Final = "kubernetes.io/ingress.class"
_WILDCARD: Final = r"\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_WILDCARD_SENTENCE: Final = (
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower "
    "case alphanumeric characters, '-' or '.' and end with an alphanumeric character "
    f"(e.g. '*.example.com', regex used for validation is '{_WILDCARD}')"
)
_LONGEST_CONTROLLER: Final = 250
_LONGEST_NAME: Final = 253
_HTTP_PATH: Final = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"
_SCOPES: Final = ("Cluster", "Namespace")


def check_ingress(value: Json) -> Iterator[Cause]:
    """An Ingress."""
    spec = value["spec"]
    if not spec.get("rules") and spec.get("defaultBackend") is None:
        yield invalid("spec", None, "either `defaultBackend` or `rules` must be specified")
    if spec.get("defaultBackend") is not None:
        yield from _check_backend(spec["defaultBackend"], "spec.defaultBackend")
    for index, rule in enumerate(spec.get("rules") or ()):
        yield from _check_rule(rule, f"spec.rules[{index}]")
    for index, each in enumerate(spec.get("tls") or ()):
        yield from _check_tls(each, f"spec.tls[{index}]")
    if spec.get("ingressClassName") is not None:
        yield from named(spec["ingressClassName"], "spec.ingressClassName")


def check_new_ingress(value: Json) -> Iterator[Cause]:
    """Refuses a new Ingress whose annotation and field name different classes."""
    noted, chosen = (value["metadata"].get("annotations") or {}).get(_CLASS), value["spec"].get("ingressClassName")
    if noted is not None and chosen is not None and noted != chosen:
        yield invalid(f"annotations.{_CLASS}", noted, "must match `ingressClassName` when both are specified")


def ingress_warnings(value: Json, old: Json | None) -> list[str]:
    """A new Ingress names its class in a field of its own."""
    is_noted = _CLASS in (value["metadata"].get("annotations") or {})
    if old is not None or not is_noted or value["spec"].get("ingressClassName") is not None:
        return []
    return [f"annotation \"{_CLASS}\" is deprecated, please use 'spec.ingressClassName' instead"]


def check_ingress_status(value: Json, _old: Json) -> Iterator[Cause]:
    """Checks the load balancer status of an Ingress."""
    balancer = (value.get("status") or {}).get("loadBalancer") or {}
    for index, each in enumerate(balancer.get("ingress") or ()):
        place = f"status.loadBalancer.ingress[{index}]"
        if each.get("ip"):
            yield from address(each["ip"], f"{place}.ip")
        if host := each.get("hostname"):
            yield from named(host, f"{place}.hostname")
            if _is_address(host):
                yield invalid(f"{place}.hostname", host, "must be a DNS name, not an IP address")


def _check_tls(each: Json, path: str) -> Iterator[Cause]:
    for number, host in enumerate(each.get("hosts") or ()):
        yield from named(host, f"{path}.hosts[{number}]", _host_faults)
    if each.get("secretName"):
        yield from named(each["secretName"], f"{path}.secretName")


def _check_rule(rule: Json, path: str) -> Iterator[Cause]:
    if host := rule.get("host"):
        if _is_address(host):
            yield invalid(f"{path}.host", host, "must be a DNS name, not an IP address")
        yield from named(host, f"{path}.host", _host_faults)
    http = rule.get("http")
    if http is None:
        return
    if not http.get("paths"):
        yield required(f"{path}.http.paths")
    for index, each in enumerate(http.get("paths") or ()):
        yield from _check_path(each, f"{path}.http.paths[{index}]")


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _host_faults(host: str) -> Sequence[str]:
    if "*" not in host:
        return DNS_SUBDOMAIN.faults(host)
    faults = [f"must be no more than {_LONGEST_NAME} characters"] if len(host) > _LONGEST_NAME else []
    return faults if re.fullmatch(_WILDCARD, host) else [*faults, _WILDCARD_SENTENCE]


def _check_path(each: Json, path: str) -> Iterator[Cause]:
    kind, text = each.get("pathType"), each.get("path", "")
    if kind is None:
        yield required(f"{path}.pathType", "pathType must be specified")
        return
    if kind not in _PATH_TYPES:
        yield unsupported(f"{path}.pathType", kind, _PATH_TYPES)
    elif not text.startswith("/") and (text or kind != "ImplementationSpecific"):
        yield invalid(f"{path}.path", text, "must be an absolute path")
    if kind in {"Exact", "Prefix"}:
        yield from _check_path_text(text, f"{path}.path")
    yield from _check_backend(each["backend"], f"{path}.backend")


def _check_path_text(text: str, field: str) -> Iterator[Cause]:
    for part in _UNWANTED:
        if part in text:
            yield invalid(field, text, f"must not contain '{part}'")
    for end in _UNWANTED_ENDS:
        if text.endswith(end):
            yield invalid(field, text, f"cannot end with '{end}'")


def _check_backend(backend: Json, path: str) -> Iterator[Cause]:
    service, resource = backend.get("service"), backend.get("resource")
    if service is not None and resource is not None:
        yield invalid(path, "", "cannot set both resource and service backends")
    elif resource is not None:
        yield from _check_reference(resource, f"{path}.resource")
    elif service is not None:
        yield from required_name(service.get("name"), f"{path}.service.name", DNS_LABEL.faults)
        yield from _check_backend_port(service.get("port") or {}, path)
    else:
        yield invalid(path, "", "resource or service backend is required")


def _check_backend_port(port: Json, path: str) -> Iterator[Cause]:
    if port.get("name") and port.get("number"):
        yield invalid(path, "", "cannot set both port name & port number")
    elif not port.get("name") and not port.get("number"):
        yield required(path, "port name or number is required")
    else:
        field = "name" if port.get("name") else "number"
        yield from node_port_or_name(port[field], f"{path}.service.port.{field}")


def _check_reference(reference: Json, path: str) -> Iterator[Cause]:
    """Another object, by its group, kind and name."""
    if reference.get("apiGroup") is not None:
        yield from named(reference["apiGroup"], f"{path}.apiGroup")
    for name in ("kind", "name"):
        yield from required_name(reference.get(name), f"{path}.{name}", path_segment_faults)


def check_ingress_class(value: Json) -> Iterator[Cause]:
    """An IngressClass."""
    controller, parameters = value["spec"].get("controller", ""), value["spec"].get("parameters")
    if len(controller.encode()) > _LONGEST_CONTROLLER:
        yield too_long("spec.controller", _LONGEST_CONTROLLER)
    yield from _check_domain_path(controller, "spec.controller")
    if parameters is not None:
        yield from _check_reference(parameters, "spec.parameters")
        yield from _check_scope(parameters, "spec.parameters", DNS_LABEL.faults)


def _check_domain_path(text: str, field: str) -> Iterator[Cause]:
    host, _, path = text.partition("/")
    if not text:
        yield required(field)
    elif not host or not path:
        yield invalid(field, text, 'must be a domain-prefixed path (such as "acme.io/foo")')
    else:
        yield from (invalid(field, host, said) for said in DNS_SUBDOMAIN.faults(host))
        if not re.fullmatch(_HTTP_PATH, path):
            yield invalid(field, path, f"Invalid path (regex used for validation is '{_HTTP_PATH}')")


def _check_scope(parameters: Json, path: str, faults: Callable[[str], Sequence[str]]) -> Iterator[Cause]:
    scope, namespace = parameters.get("scope"), parameters.get("namespace")
    if scope not in _SCOPES:
        yield unsupported(f"{path}.scope", scope, _SCOPES)
    elif scope == "Cluster" and namespace is not None:
        yield forbidden(f"{path}.namespace", "`parameters.scope` is set to 'Cluster'")
    elif scope == "Namespace" and namespace is None:
        yield required(f"{path}.namespace", "`parameters.scope` is set to 'Namespace'")
    elif scope == "Namespace":
        yield from named(namespace or "", f"{path}.namespace", faults)


def check_ingress_class_update(value: Json, old: Json) -> list[Cause]:
    """The controller of a class never changes."""
    now, then = (each["spec"].get("controller", "") for each in (value, old))
    return immutable_faults(now, then, "spec.controller")
