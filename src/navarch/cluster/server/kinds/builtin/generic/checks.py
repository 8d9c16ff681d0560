"""Checks that several kinds share: numbers, names, ports, addresses, labels and conditions."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from navarch.api.names import DNS_LABEL, DNS_SUBDOMAIN
from navarch.api.strconv import parse_int64
from navarch.cluster.server.objects.metadata import key_faults
from navarch.cluster.server.wire.request import Json
from navarch.cluster.server.wire.status_causes import duplicate, forbidden, invalid, required, unsupported
from navarch.errors import Cause

NOT_NEGATIVE: Final = "must be greater than or equal to 0"
_PORT_RANGE: Final = "must be between 1 and 65535, inclusive"
_HIGHEST_PORT: Final = 65535
_PERCENT: Final = re.compile(r"[0-9]+%")
_PERCENT_SENTENCE: Final = (
    "a valid percent string must be a numeric string followed by an ending '%' "
    "(e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
)
_WHOLE: Final = 100
_CONFIG_KEY: Final = re.compile(r"[-._a-zA-Z0-9]+")
_CONFIG_KEY_SENTENCE: Final = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' "
    "(e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
_ADDRESS_SENTENCE: Final = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
_RANGE_SENTENCE: Final = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"


def at_least_zero(value: Mapping[str, Any], field: str, path: str) -> Iterator[Cause]:
    """A number that may be missing, but not negative."""
    number = value.get(field)
    if number is not None and number < 0:
        yield invalid(f"{path}.{field}" if path else field, number, NOT_NEGATIVE)


def choice(value: Any, field: str, allowed: Sequence[str]) -> Iterator[Cause]:
    """One of a few words; missing is for others to judge."""
    if value is not None and value not in allowed:
        yield unsupported(field, value, allowed)


def named(value: str, field: str, faults: Callable[[str], Sequence[str]] = DNS_SUBDOMAIN.faults) -> Iterator[Cause]:
    """A name that follows a rule."""
    for said in faults(value):
        yield invalid(field, value, said)


def exactly_one(given: Sequence[str], path: str, what: str) -> Iterator[Cause]:
    """One of several fields; of those that are given, the first is taken to be meant."""
    if not given:
        yield required(path, f"must specify a {what}")
    for name in given[1:]:
        yield forbidden(f"{path}.{name}", f"may not specify more than 1 {what}")


def unique(values: Iterable[tuple[Any, str]]) -> Iterator[Cause]:
    """Values with their fields, each at most once."""
    seen: set[Any] = set()
    for value, field in values:
        if value in seen:
            yield duplicate(field, value)
        seen.add(value)


def port_number(port: Any, field: str) -> Iterator[Cause]:
    """A port between 1 and 65535."""
    if not isinstance(port, int) or not 1 <= port <= _HIGHEST_PORT:
        yield invalid(field, port, _PORT_RANGE)


def port_name_faults(name: str) -> list[str]:
    """The server's sentences about the name of a port."""
    faults = []
    if len(name) > 15:
        faults.append("must be no more than 15 characters")
    if not re.fullmatch(r"[-a-z0-9]+", name):
        faults.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search(r"[a-z]", name):
        faults.append("must contain at least one letter (a-z)")
    if "--" in name:
        faults.append("must not contain consecutive hyphens")
    if name.startswith("-") or name.endswith("-"):
        faults.append("must not begin or end with a hyphen")
    return faults


def node_port_or_name(port: Any, field: str) -> Iterator[Cause]:
    """A port by its number or its name."""
    if isinstance(port, str):
        yield from named(port, field, port_name_faults)
    else:
        yield from port_number(port, field)


def is_percent(value: Any) -> bool:
    """Tells whether a value is written as a percentage."""
    return isinstance(value, str) and _PERCENT.fullmatch(value) is not None


def _percentage(value: str) -> int:
    number = parse_int64(value[:-1])
    return _WHOLE + 1 if number is None else number


def int_or_percent(value: Any, field: str, *, at_most_all: bool = False) -> Iterator[Cause]:
    """A number that is not negative, or a percentage; where asked, of at most 100%."""
    if value is None:
        return
    if isinstance(value, str):
        if not is_percent(value):
            yield invalid(field, value, _PERCENT_SENTENCE)
        elif at_most_all and _percentage(value) > _WHOLE:
            yield invalid(field, value, "must not be greater than 100%")
    elif value < 0:
        yield invalid(field, value, NOT_NEGATIVE)


def config_key(key: str, field: str) -> Iterator[Cause]:
    """A key of a ConfigMap or a Secret, which can become the name of a file."""
    if len(key) > 253:
        yield invalid(field, key, "must be no more than 253 characters")
    if not _CONFIG_KEY.fullmatch(key):
        yield invalid(field, key, _CONFIG_KEY_SENTENCE)
    elif key in {".", ".."}:
        yield invalid(field, key, f"must not be '{key}'")
    elif key.startswith(".."):
        yield invalid(field, key, "must not start with '..'")


def address(text: str, field: str) -> Iterator[Cause]:
    """An IP address."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        yield invalid(field, text, _ADDRESS_SENTENCE)


def address_range(text: str, field: str) -> Iterator[Cause]:
    """A range of addresses."""
    try:
        ipaddress.ip_network(text, strict=False)
        is_range = "/" in text
    except ValueError:
        is_range = False
    if not is_range:
        yield invalid(field, text, _RANGE_SENTENCE)


_STANDARD: Final = frozenset(
    {
        "cpu",
        "memory",
        "ephemeral-storage",
        "requests.cpu",
        "requests.memory",
        "requests.storage",
        "requests.ephemeral-storage",
        "limits.cpu",
        "limits.memory",
        "limits.ephemeral-storage",
        "pods",
        "resourcequotas",
        "services",
        "replicationcontrollers",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "storage",
        "services.nodeports",
        "services.loadbalancers",
    }
)


def standard_resource(name: str) -> bool:
    """Tells whether an unqualified resource name is one of Kubernetes' own."""
    return name in _STANDARD or name.startswith(("hugepages-", "requests.hugepages-"))


def resource_name(name: str, field: str) -> Iterator[Cause]:
    """The name of a resource: a qualified one, or one that Kubernetes knows."""
    faults = key_faults(name)
    for said in faults:
        yield invalid(field, name, said)
    if not faults and "/" not in name and not standard_resource(name):
        yield invalid(field, name, "must be a standard resource type or fully qualified")


def selects(selector: Json, labels: Mapping[str, str]) -> bool:
    """Tells whether a LabelSelector matches labels; an invalid selector matches none."""
    equal = all(labels.get(key) == value for key, value in (selector.get("matchLabels") or {}).items())
    return equal and all(_meets(each, labels) for each in selector.get("matchExpressions") or ())


def _meets(requirement: Json, labels: Mapping[str, str]) -> bool:
    key, values = requirement.get("key", ""), requirement.get("values") or ()
    match requirement.get("operator"):
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return key not in labels or labels[key] not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
        case _:
            return False


def in_order(labels: Mapping[str, str] | None) -> Mapping[str, str] | None:
    """Labels by their keys, as Go writes maps."""
    return dict(sorted(labels.items())) if labels is not None else None


def label_name(text: str, field: str) -> Iterator[Cause]:
    """The key of a label."""
    for said in key_faults(text):
        yield invalid(field, text, said)


def required_name(
    value: str | None, field: str, faults: Callable[[str], Sequence[str]] = DNS_LABEL.faults
) -> Iterator[Cause]:
    """A name that has to be there and to follow a rule."""
    if not value:
        yield required(field)
    else:
        yield from named(value, field, faults)


def finalizer_name(name: str, field: str) -> Iterator[Cause]:
    """A finalizer that is Kubernetes' own, or says whose it is."""
    if "/" not in name and name not in {"kubernetes", "orphan", "foregroundDeletion"}:
        yield invalid(field, name, "name is neither a standard finalizer name nor is it fully qualified")


_STATUSES: Final = ("False", "True", "Unknown")
_REASON: Final = r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_REASON_SENTENCE: Final = (
    "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric characters "
    "or '_,:', and must end with an alphanumeric character or '_' "
    f"(e.g. 'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', "
    f"regex used for validation is '{_REASON}')"
)


def check_conditions(conditions: Sequence[Json], path: str) -> Iterator[Cause]:
    """Checks metav1 conditions: required fields, and no type twice."""
    yield from unique((each.get("type", ""), f"{path}[{index}].type") for index, each in enumerate(conditions))
    for index, each in enumerate(conditions):
        yield from _check_condition(each, f"{path}[{index}]")


def _check_condition(condition: Json, path: str) -> Iterator[Cause]:
    yield from label_name(condition.get("type", ""), f"{path}.type")
    yield from choice(condition.get("status", ""), f"{path}.status", _STATUSES)
    if condition.get("observedGeneration", 0) < 0:
        yield invalid(
            f"{path}.observedGeneration", condition["observedGeneration"], "must be greater than or equal to zero"
        )
    if not condition.get("lastTransitionTime"):
        yield required(f"{path}.lastTransitionTime")
    if not condition.get("reason"):
        yield required(f"{path}.reason")
    elif not re.fullmatch(_REASON, condition["reason"]):
        yield invalid(f"{path}.reason", condition["reason"], _REASON_SENTENCE)


def not_negative(status: Json, *names: str) -> Iterator[Cause]:
    """Counts that are none below zero."""
    for name in names:
        if (status.get(name) or 0) < 0:
            yield invalid(f"status.{name}", status[name], "must be greater than or equal to 0")
