"""The options of a write, from its query: as admission sees them, and refused as the real server refuses them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Final

from navarch.api.strconv import go_quoted
from navarch.cluster.server.wire.request import ApiRequest, Json, RequestInfo
from navarch.cluster.server.wire.status_causes import forbidden, invalid, required, too_long, unsupported
from navarch.cluster.server.wire.status_errors import StatusError, bad_request
from navarch.cluster.server.wire.status_errors import invalid as refused
from navarch.errors import Cause

_LONG: Final = frozenset({"attach", "exec", "log", "portforward", "proxy"})
_NUMBER: Final = re.compile(r"(?:\d+(?:\.\d*)?|\.\d+)")
_UNIT: Final = re.compile(r"[^\d.]*")
_UNITS: Final = frozenset({"ns", "us", "µs", "μs", "ms", "s", "m", "h"})
_GROUP: Final = "meta.k8s.io"
_LONGEST_MANAGER: Final = 128
_VALIDATIONS: Final = ("", "Ignore", "Strict", "Warn")
_TRUE: Final = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "false", "FALSE", "False"})


def refuse_malformed_timeout(request: ApiRequest, info: RequestInfo) -> None:
    """400 for a time that is none, whoever asks. One that can be read is not needed: every answer is soon there.

    What lasts long, such as a watch, has no such time.
    """
    given = request.parameter("timeout")
    if not given or info.verb == "watch" or info.subresource.partition("/")[0] in _LONG:
        return
    if fault := duration_fault(given):
        raise bad_request(f"invalid timeout specified in the request URL - {fault}")


def duration_fault(text: str) -> str:
    """What Go's `time.ParseDuration` says about a text that is no duration; empty if it is one.

    >>> duration_fault("1h2.5s"), duration_fault("soon"), duration_fault("5")
    ('', 'time: invalid duration "soon"', 'time: missing unit in duration "5"')
    """
    place = 1 if text[:1] in {"+", "-"} else 0
    if text[place:] == "0":
        return ""
    invalid = f"time: invalid duration {go_quoted(text)}"
    while place < len(text):
        if (number := _NUMBER.match(text, place)) is None:
            return invalid
        unit = _UNIT.match(text, number.end())
        assert unit is not None
        if not unit[0]:
            return f"time: missing unit in duration {go_quoted(text)}"
        if unit[0] not in _UNITS:
            return f"time: unknown unit {go_quoted(unit[0])} in duration {go_quoted(text)}"
        place = unit.end()
    return "" if text not in {"", "+", "-"} else invalid


def write_options(kind: str, request: ApiRequest) -> Json:
    """CreateOptions or UpdateOptions; refuses with 422."""
    return _checked(kind, _given(kind, request), _shared_faults(request))


def patch_options(request: ApiRequest, *, is_apply: bool) -> Json:
    """PatchOptions; refuses with 400 and 422."""
    options = _given("PatchOptions", request)
    force, faults = request.parameter("force"), _shared_faults(request)
    if force:
        options["force"] = boolean(force)
    if force and not is_apply:
        faults.insert(0, forbidden("force", "may not be specified for non-apply patch"))
    if is_apply and not request.parameter("fieldManager"):
        faults.insert(0, required("fieldManager", "is required for apply patch"))
    return _checked("PatchOptions", options, faults)


def create_options(options: Json) -> Json:
    """The CreateOptions of an update or an apply that creates, as admission sees them."""
    return {**{name: value for name, value in options.items() if name != "force"}, "kind": "CreateOptions"}


def boolean(text: str) -> bool:
    """A flag as Go reads it."""
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    raise bad_request(f'strconv.ParseBool: parsing "{text}": invalid syntax')


def dry_run_faults(given: Sequence[str]) -> list[Cause]:
    """A dry run is of everything or not asked for."""
    return [unsupported("dryRun", list(given), ["All"])] if any(each != "All" for each in given) else []


def _checked(kind: str, options: Json, faults: list[Cause]) -> Json:
    if faults:
        raise refusal_of(kind, faults)
    return options


def refusal_of(kind: str, faults: Sequence[Cause]) -> StatusError:
    """422 about options."""
    return refused(_GROUP, kind, "", faults)


def _given(kind: str, request: ApiRequest) -> Json:
    options: Json = {"kind": kind, "apiVersion": f"{_GROUP}/v1"}
    for name in ("fieldManager", "fieldValidation"):
        if value := request.parameter(name):
            options[name] = value
    if dry_run := request.query.get("dryRun"):
        options["dryRun"] = list(dry_run)
    return options


def _shared_faults(request: ApiRequest) -> list[Cause]:
    validation = request.parameter("fieldValidation")
    is_known = validation in _VALIDATIONS
    return [
        *_manager_faults(request.parameter("fieldManager")),
        *dry_run_faults(request.query.get("dryRun", ())),
        *([] if is_known else [unsupported("fieldValidation", validation, _VALIDATIONS)]),
    ]


def _manager_faults(manager: str) -> list[Cause]:
    faults = []
    if len(manager.encode()) > _LONGEST_MANAGER:
        faults.append(too_long("fieldManager", _LONGEST_MANAGER))
    if manager.isprintable():
        return faults
    faults += [
        invalid("fieldManager", manager, f"invalid character U+{ord(each):04X} (at position {place})")
        for each, place in zip(manager, _places(manager), strict=True)
        if not each.isprintable()
    ]
    return faults


def _places(text: str) -> Iterator[int]:
    """Where each character begins, in bytes."""
    return accumulate((len(each.encode()) for each in text[:-1]), initial=0) if text else iter(())


def refuse_list_options(request: ApiRequest) -> None:
    """422 for a list with options that contradict each other."""
    version, match = request.parameter("resourceVersion"), request.parameter("resourceVersionMatch")
    faults = []
    if match and not version:
        faults.append(_unmatched("resourceVersionMatch is forbidden unless resourceVersion is provided"))
    if match and request.parameter("continue"):
        faults.append(_unmatched("resourceVersionMatch is forbidden when continue is provided"))
    if match and match not in {"Exact", "NotOlderThan"}:
        faults.append(unsupported("resourceVersionMatch", match, ["Exact", "NotOlderThan", ""]))
    if match == "Exact" and version == "0":
        faults.append(_unmatched('resourceVersionMatch "exact" is forbidden for resourceVersion "0"'))
    if request.parameter("sendInitialEvents"):
        faults.append(forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    _checked("ListOptions", {}, faults)


def refuse_watch_options(request: ApiRequest) -> None:
    """The same for a watch."""
    initial, match = request.parameter("sendInitialEvents"), request.parameter("resourceVersionMatch")
    faults = []
    if initial and match != "NotOlderThan":
        faults.append(_unmatched("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"))
    if match and not initial:
        faults.append(_unmatched("resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"))
    if match not in {"", "NotOlderThan"}:
        faults.append(unsupported("resourceVersionMatch", match, ["NotOlderThan"]))
    if match and request.parameter("continue"):
        faults.append(_unmatched("resourceVersionMatch is forbidden when continue is provided"))
    _checked("ListOptions", {}, faults)


def _unmatched(why: str) -> Cause:
    return forbidden("resourceVersionMatch", why)
