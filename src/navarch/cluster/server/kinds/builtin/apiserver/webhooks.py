"""Checks of webhook configurations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

from navarch.api.names import DNS_1035_LABEL, DNS_SUBDOMAIN, LABEL_KEY
from navarch.cluster.server.kinds.builtin.apiserver.expressions import condition_faults
from navarch.cluster.server.kinds.builtin.generic.checks import choice, port_number, unique
from navarch.cluster.server.objects.metadata import selector_faults
from navarch.cluster.server.wire.request import Json
from navarch.cluster.server.wire.status_causes import duplicate, invalid, required, unsupported
from navarch.errors import Cause

_EFFECTS: Final = ("None", "NoneOnDryRun")
_VERSIONS: Final = frozenset({"v1", "v1beta1"})
_OPERATIONS: Final = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_SCOPES: Final = ("*", "Cluster", "Namespaced")
_SEGMENTS: Final = 3
_LONGEST_SECONDS: Final = 30


def check_webhooks(value: Json) -> Iterator[Cause]:
    """A ValidatingWebhookConfiguration."""
    webhooks = value.get("webhooks") or ()
    yield from unique((each.get("name", ""), f"webhooks[{index}].name") for index, each in enumerate(webhooks))
    for index, webhook in enumerate(webhooks):
        yield from _check_webhook(webhook, f"webhooks[{index}]")


def check_mutating_webhooks(value: Json) -> Iterator[Cause]:
    """A MutatingWebhookConfiguration."""
    yield from check_webhooks(value)
    for index, webhook in enumerate(value.get("webhooks") or ()):
        policy = webhook.get("reinvocationPolicy")
        yield from choice(policy, f"webhooks[{index}].reinvocationPolicy", ("IfNeeded", "Never"))


def _check_webhook(webhook: Json, path: str) -> Iterator[Cause]:
    yield from _check_name(webhook.get("name", ""), f"{path}.name")
    yield from _check_versions(webhook.get("admissionReviewVersions") or [], f"{path}.admissionReviewVersions")
    for index, rule in enumerate(webhook.get("rules") or ()):
        yield from check_rule(rule, f"{path}.rules[{index}]")
    yield from choice(webhook.get("failurePolicy"), f"{path}.failurePolicy", ("Fail", "Ignore"))
    yield from choice(webhook.get("matchPolicy"), f"{path}.matchPolicy", ("Equivalent", "Exact"))
    effects = webhook.get("sideEffects")
    if effects is None:
        yield required(f"{path}.sideEffects", "must specify one of None, NoneOnDryRun")
    else:
        yield from choice(effects, f"{path}.sideEffects", _EFFECTS)
    seconds = webhook.get("timeoutSeconds")
    if seconds is not None and not 1 <= seconds <= _LONGEST_SECONDS:
        yield invalid(f"{path}.timeoutSeconds", seconds, "the timeout value must be between 1 and 30 seconds")
    for name in ("namespaceSelector", "objectSelector"):
        yield from selector_faults(webhook.get(name), f"{path}.{name}")
    yield from _check_client(webhook["clientConfig"], f"{path}.clientConfig")
    conditions = webhook.get("matchConditions") or []
    yield from check_conditions(conditions, f"{path}.matchConditions")
    yield from condition_faults(conditions, f"{path}.matchConditions")


def _check_name(name: str, field: str) -> Iterator[Cause]:
    if not name:
        yield required(field)
        return
    faults = DNS_SUBDOMAIN.faults(name)
    yield from (invalid(field, name, said) for said in faults)
    if not faults and len(name.split(".")) < _SEGMENTS:
        yield invalid(field, name, "should be a domain with at least three segments separated by dots")


def _check_versions(versions: list[str], field: str) -> Iterator[Cause]:
    if not versions:
        yield required(field, "must specify one of v1, v1beta1")
        return
    seen: set[str] = set()
    for index, version in enumerate(versions):
        if version in seen:
            yield invalid(f"{field}[{index}]", version, "duplicate version")
        else:
            yield from (invalid(f"{field}[{index}]", version, said) for said in DNS_1035_LABEL.faults(version))
        seen.add(version)
    if not _VERSIONS & {*versions}:
        yield invalid(field, versions, "must include at least one of v1, v1beta1")


def check_rule(rule: Json, path: str) -> Iterator[Cause]:
    """Checks a rule that selects requests."""
    operations = rule.get("operations") or []
    if not operations:
        yield required(f"{path}.operations")
    elif "*" in operations and len(operations) > 1:
        yield invalid(f"{path}.operations", operations, "if '*' is present, must not specify other operations")
    for index, operation in enumerate(operations):
        if operation not in _OPERATIONS:
            yield unsupported(f"{path}.operations[{index}]", operation, _OPERATIONS)
    for name, what in (("apiGroups", "API groups"), ("apiVersions", "API versions")):
        yield from _check_listed(rule.get(name) or [], f"{path}.{name}", what)
    for index, version in enumerate(rule.get("apiVersions") or ()):
        if not version:
            yield required(f"{path}.apiVersions[{index}]")
    yield from _check_resources(rule.get("resources") or [], f"{path}.resources")
    yield from choice(rule.get("scope"), f"{path}.scope", _SCOPES)


def _check_listed(values: list[str], field: str, what: str) -> Iterator[Cause]:
    if not values:
        yield required(field)
    elif "*" in values and len(values) > 1:
        yield invalid(field, values, f"if '*' is present, must not specify other {what}")


def _check_resources(resources: list[str], path: str) -> Iterator[Cause]:
    """Reports resources that another entry already covers."""
    if not resources:
        yield required(path)
    whole, named = set[str](), set[str]()
    for index, each in enumerate(resources):
        resource, _, part = each.partition("/")
        if not each:
            yield required(f"{path}[{index}]")
        if part and resource in whole:
            yield invalid(f"{path}[{index}]", each, f"if '{resource}/*' is present, must not specify {each}")
        if part and part in named:
            yield invalid(f"{path}[{index}]", each, f"if '*/{part}' is present, must not specify {each}")
        whole |= {resource} if part == "*" else set()
        named |= {part} if part and resource == "*" else set()
    yield from _check_wildcards(resources, path)


def _check_wildcards(resources: list[str], path: str) -> Iterator[Cause]:
    if len(resources) > 1 and "*/*" in resources:
        yield invalid(path, resources, "if '*/*' is present, must not specify other resources")
    plain = [each for each in resources if each and "/" not in each]
    if "*" in plain and plain[-1] != "*":
        said = "if '*' is present, must not specify other resources without subresources"
        yield invalid(path, resources, said)


def check_conditions(conditions: list[Json], path: str) -> Iterator[Cause]:
    """`matchConditions`, but for what their expressions say."""
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        name, place = condition.get("name", ""), f"{path}[{index}]"
        if not condition.get("expression", "").strip():
            yield required(f"{place}.expression")
        if not name:
            yield required(f"{place}.name")
        elif name in seen:
            yield duplicate(f"{place}.name", name)
        else:
            yield from (invalid(f"{place}.name", name, said) for said in LABEL_KEY.faults(name))
        seen.add(name)


def _check_client(client: Json, path: str) -> Iterator[Cause]:
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        yield required(path, "exactly one of url or service is required")
    elif url is not None:
        yield from _check_url(url, f"{path}.url")
    elif service is not None:
        for name, told in (("name", "namespace"), ("namespace", "name")):
            if not service.get(name):
                yield required(f"{path}.service.{told}")  # as the real server has it, which mistakes them
        for cause in port_number(service.get("port", 443), f"{path}.service.port"):
            yield Cause(cause.field, cause.reason, cause.message.replace(": must", ": port is not valid: must"))
        yield from _check_path(service.get("path") or "/", f"{path}.service.path")


def _check_path(path: str, field: str) -> Iterator[Cause]:
    if path == "/":
        return
    if not path.startswith("/"):
        yield invalid(field, path, "must start with a '/'")
    steps = [""] if path == "//" else path[1:].removesuffix("/").split("/")
    for index, step in enumerate(steps):
        if not step:
            yield invalid(field, path, f"segment[{index}] may not be empty")
        else:
            yield from (invalid(field, path, f"segment[{index}]: {said}") for said in DNS_SUBDOMAIN.faults(step))


def _check_url(url: str, field: str) -> Iterator[Cause]:
    form = "; desired format: https://host[/path]"
    parts = urlsplit(url)
    if parts.scheme != "https":
        yield invalid(field, parts.scheme, f"'https' is the only allowed URL scheme{form}")
    if not parts.netloc:
        yield invalid(field, parts.netloc, f"host must be specified{form}")
    if parts.username is not None:
        yield invalid(field, parts.username, "user information is not permitted in the URL")
    if parts.fragment:
        yield invalid(field, parts.fragment, "fragments are not permitted in the URL")
    if parts.query:
        yield invalid(field, parts.query, "query parameters are not permitted in the URL")
