"""The webhook configurations of an operator, from its declarations: pure data."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from navarch.api import Kind
from navarch.api.json_patch import copy_json
from navarch.cache import Namespaces
from navarch.webhook.declaration import DeclaredWebhook

MUTATING = Kind(
    "admissionregistration.k8s.io",
    "v1",
    "MutatingWebhookConfiguration",
    plural="mutatingwebhookconfigurations",
    namespaced=False,
)
VALIDATING = Kind(
    "admissionregistration.k8s.io",
    "v1",
    "ValidatingWebhookConfiguration",
    plural="validatingwebhookconfigurations",
    namespaced=False,
)
_NAMESPACE_LABEL = "kubernetes.io/metadata.name"
_SYSTEM = "kube-system"
_OF_START = frozenset(
    {
        *(
            ("", plural)
            for plural in ("configmaps", "endpoints", "events", "persistentvolumeclaims", "pods", "secrets")
        ),
        *(("", plural) for plural in ("serviceaccounts", "services")),
        *(("apps", plural) for plural in ("deployments", "replicasets", "statefulsets", "daemonsets")),
        *(("batch", plural) for plural in ("jobs",)),
        ("coordination.k8s.io", "leases"),
        ("discovery.k8s.io", "endpointslices"),
        ("events.k8s.io", "events"),
        ("rbac.authorization.k8s.io", "roles"),
        ("rbac.authorization.k8s.io", "rolebindings"),
        *(("*", "*"), ("", "*"), ("apps", "*")),
    }
)
"""The namespaced kinds without which an operator's own pod, or a node's, does not start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookAddress:
    """How the API server reaches the webhooks: by a Service, or by a URL."""

    service: str = ""
    namespace: str = ""
    port: int = 443
    url: str = ""

    def client_config(self, path: str, ca_bundle: bytes = b"") -> dict[str, Any]:
        """Returns the `clientConfig` for one path. Without a bundle the API server trusts its machine's authorities."""
        trust = {"caBundle": b64encode(ca_bundle).decode()} if ca_bundle else {}
        if self.url:
            return {"url": self.url.rstrip("/") + path, **trust}
        service = {"namespace": self.namespace, "name": self.service, "path": path, "port": self.port}
        return {"service": service, **trust}


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookSet:
    """The declared webhooks of one operator, and what their configurations depend on.

    `own_namespace` is that of the operator's pods, empty outside of a cluster.
    """

    operator: str
    webhooks: Sequence[DeclaredWebhook[Any, Any]]
    namespaces: Namespaces
    address: WebhookAddress
    own_namespace: str = ""
    annotations: Mapping[str, str] = field(default_factory=dict)

    def configurations(self, ca_bundle: bytes = b"") -> list[dict[str, Any]]:
        """Returns the mutating and the validating configuration; one without webhooks is left out."""
        found = []
        for kind, is_mutating in ((MUTATING, True), (VALIDATING, False)):
            entries = [self._entry(each, ca_bundle) for each in self.webhooks if each.is_mutating is is_mutating]
            if entries:
                metadata: dict[str, Any] = {"name": self.operator}
                if self.annotations:
                    metadata["annotations"] = dict(self.annotations)
                found.append(
                    {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "webhooks": entries}
                )
        return found

    def _entry(self, webhook: DeclaredWebhook[Any, Any], ca_bundle: bytes) -> dict[str, Any]:
        options, kind = webhook.options, webhook.resource
        entry: dict[str, Any] = {
            "name": webhook.name,
            "clientConfig": self.address.client_config(webhook.path, ca_bundle),
            "rules": [
                {
                    "apiGroups": [kind.group],
                    "apiVersions": [kind.version],
                    "operations": list(options.operations),
                    "resources": [f"{kind.plural}/{options.subresource}" if options.subresource else kind.plural],
                    "scope": "*" if kind.plural == "*" else "Namespaced" if kind.namespaced else "Cluster",
                }
            ],
            "failurePolicy": options.failure_policy,
            "matchPolicy": options.match_policy,
            "namespaceSelector": self._namespace_selector(webhook),
            "objectSelector": options.object_selector.to_wire(),
            "sideEffects": options.side_effects,
            "timeoutSeconds": options.timeout,
            "admissionReviewVersions": ["v1"],
            "matchConditions": [
                {"name": name, "expression": expression} for name, expression in self._conditions(webhook).items()
            ],
        }
        if webhook.is_mutating:
            entry["reinvocationPolicy"] = options.reinvocation
        return entry

    def _namespace_selector(self, webhook: DeclaredWebhook[Any, Any]) -> dict[str, Any]:
        """Selects the operator's namespaces, without those whose pods have to start while the webhook is down."""
        selector = webhook.options.namespace_selector.to_wire()
        if not webhook.resource.namespaced:
            return selector
        terms = list(selector.get("matchExpressions") or ())
        if names := self.namespaces.names:
            terms.append(_term("In", names))
        if (webhook.resource.group, webhook.resource.plural) in _OF_START:
            terms.append(_term("NotIn", filter(None, {self.own_namespace, _SYSTEM})))
        return {**selector, "matchExpressions": terms} if terms else selector

    def _conditions(self, webhook: DeclaredWebhook[Any, Any]) -> dict[str, str]:
        """Returns the match conditions; patterns of namespaces, which no selector can express, come first."""
        conditions = dict(webhook.options.match_conditions)
        if webhook.resource.namespaced and not self.namespaces.all and self.namespaces.names is None:
            return {"namespaces-of-the-operator": _matches(self.namespaces.patterns), **conditions}
        return conditions


def _term(operator: str, names: Iterable[str]) -> dict[str, Any]:
    return {"key": _NAMESPACE_LABEL, "operator": operator, "values": sorted(names)}


def _matches(patterns: tuple[str, ...]) -> str:
    """Returns the CEL expression that is true in the namespaces that the patterns select."""
    wanted = [_regex(pattern) for pattern in patterns if not pattern.startswith("!")]
    unwanted = [_regex(pattern[1:]) for pattern in patterns if pattern.startswith("!")]
    parts = [f"request.namespace.matches('^({'|'.join(wanted)})$')"] if wanted else []
    parts += [f"!request.namespace.matches('^({'|'.join(unwanted)})$')"] if unwanted else []
    return " && ".join(parts)


def _regex(pattern: str) -> str:
    return re.sub(r"[*?]", lambda found: ".*" if found[0] == "*" else ".", pattern)


def is_configured(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Returns whether a configuration in the cluster has exactly the wanted webhooks, and the wanted annotations."""
    annotations = (found["metadata"].get("annotations") or {}).items()
    if not (wanted["metadata"].get("annotations") or {}).items() <= annotations:
        return False
    entries = {entry.get("name"): entry for entry in found.get("webhooks") or ()}
    if [*entries] != [entry["name"] for entry in wanted["webhooks"]]:
        return False
    return all(
        _is_same(with_foreign_bundle(entry, entries[entry["name"]]), entries[entry["name"]])
        for entry in wanted["webhooks"]
    )


def with_foreign_bundle(wanted: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the entry with the bundle that cert-manager injected, if the operator brings none of its own."""
    entry: dict[str, Any] = copy_json(dict(wanted))
    injected = (found.get("clientConfig") or {}).get("caBundle")
    if injected and "caBundle" not in entry["clientConfig"]:
        entry["clientConfig"]["caBundle"] = injected
    return entry


def _is_same(wanted: Any, found: Any) -> bool:
    """Compares two values; a missing one is the same as an empty one."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        return all(_is_same(wanted.get(key), found.get(key)) for key in wanted.keys() | found.keys())
    return (wanted or None) == (found or None) or (not wanted and not found)
