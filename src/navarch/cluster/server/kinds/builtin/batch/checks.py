"""Checks of Jobs, CronJobs and cron schedules."""

from __future__ import annotations

import re
import zoneinfo
from collections.abc import Iterator
from typing import Final

from navarch.api.cron import CRON_FIELDS, CRON_WORDS, EVERY, CronField
from navarch.api.names import DNS_LABEL, DNS_SUBDOMAIN
from navarch.api.strconv import parse_int64
from navarch.cluster.server.kinds.builtin.generic.checks import at_least_zero, choice, in_order, not_negative, selects
from navarch.cluster.server.kinds.builtin.pods.spec import check_template
from navarch.cluster.server.objects.metadata import immutable_faults, selector_faults
from navarch.cluster.server.wire.request import Json
from navarch.cluster.server.wire.status_causes import invalid, required, unsupported
from navarch.errors import Cause

_DURATION: Final = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h)([0-9.]+(ns|us|µs|ms|s|m|h))*")


def schedule_fault(schedule: str) -> str:
    """Returns the fault of a cron schedule; empty if there is none.

    >>> schedule_fault("*/5 9-17 * * mon-fri"), schedule_fault("61 * * * *")
    ('', 'end of range (61) above maximum (59): 61')
    """
    text = schedule
    if text.startswith(("TZ=", "CRON_TZ=")):
        text = text.partition(" ")[2].strip()
    if text.startswith("@"):
        return _descriptor_fault(text)
    fields = text.split()
    if len(fields) != len(CRON_FIELDS):
        return f"expected exactly {len(CRON_FIELDS)} fields, found {len(fields)}: [{' '.join(fields)}]"
    faults = (
        _range_fault(part, field)
        for written, field in zip(fields, CRON_FIELDS, strict=True)
        for part in written.split(",")
        if part
    )
    return next((fault for fault in faults if fault), "")


def _descriptor_fault(text: str) -> str:
    if text in CRON_WORDS:
        return ""
    if not text.startswith(EVERY):
        return f"unrecognized descriptor: {text}"
    written = text.removeprefix(EVERY)
    if _DURATION.fullmatch(written):
        return ""
    why = "missing unit in duration" if re.fullmatch(r"[0-9.]+", written) else "invalid duration"
    return f'failed to parse duration {text}: time: {why} "{written}"'


def _range_fault(text: str, field: CronField) -> str:
    range_text, *steps = text.split("/")
    if len(steps) > 1:
        return f"too many slashes: {text}"
    bounds = range_text.split("-")
    if bounds[0] in {"*", "?"}:
        lowest, highest = field.lowest, field.highest
    elif len(bounds) > 2:
        return f"too many hyphens: {text}"
    else:
        numbers = [_number(bound, field) for bound in bounds]
        wrong = next((number for number in numbers if isinstance(number, str)), "")
        if wrong:
            return wrong
        lowest, highest = int(numbers[0]), int(numbers[-1])
        if steps and len(bounds) == 1:
            highest = field.highest
    return _step_fault(steps, text) or _bounds_fault(lowest, highest, text, field)


def _number(text: str, field: CronField) -> int | str:
    """The number that a text is, or what is wrong with it."""
    if (named := field.named(text)) is not None:
        return named
    if text.isascii() and text.isdecimal() and (number := parse_int64(text)) is not None:
        return number
    if re.fullmatch(r"-[0-9]+", text):
        return f"negative number ({text}) not allowed: {text}"
    return f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": invalid syntax'


def _step_fault(steps: list[str], text: str) -> str:
    if not steps:
        return ""
    step = _number(steps[0], CronField(0, 0))
    if isinstance(step, str):
        return step
    return "" if step else f"step of range should be a positive number: {text}"


def _bounds_fault(lowest: int, highest: int, text: str, field: CronField) -> str:
    if lowest < field.lowest:
        return f"beginning of range ({lowest}) below minimum ({field.lowest}): {text}"
    if highest > field.highest:
        return f"end of range ({highest}) above maximum ({field.highest}): {text}"
    if lowest > highest:
        return f"beginning of range ({lowest}) beyond end of range ({highest}): {text}"
    return ""


_UID_LABEL: Final = "batch.kubernetes.io/controller-uid"
_NAME_LABEL: Final = "batch.kubernetes.io/job-name"
_NUMBERS: Final = (
    "parallelism",
    "completions",
    "backoffLimit",
    "activeDeadlineSeconds",
    "ttlSecondsAfterFinished",
    "backoffLimitPerIndex",
    "maxFailedIndexes",
)
_RESTARTS: Final = ("OnFailure", "Never")
_IMMUTABLE: Final = ("completionMode", "backoffLimitPerIndex", "podFailurePolicy", "successPolicy", "managedBy")
_LONGEST_CRON_JOB: Final = 52
_EXPLICIT_ZONE: Final = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
_MUTABLE_OF_SUSPENDED: Final = frozenset({"nodeSelector", "tolerations", "affinity", "schedulingGates"})


def check_job(value: Json) -> Iterator[Cause]:
    """A Job."""
    yield from _check_job_spec(value["spec"], "spec")
    yield from _check_job_selector(value)
    yield from _check_index(value)


def _check_index(value: Json) -> Iterator[Cause]:
    """The pods of an indexed Job are named after it and their index: the last name must be one, too."""
    spec, name = value["spec"], value["metadata"].get("name", "")
    if spec.get("completionMode") != "Indexed" or not (spec.get("completions") or 0) > 0:
        return
    last = f"{name}-{spec['completions'] - 1}"
    if DNS_LABEL.faults(last):
        yield invalid("metadata.name", name, f"will not able to create pod with invalid DNS label: {last}")


def _check_job_selector(value: Json) -> Iterator[Cause]:
    spec = value["spec"]
    selector, labels = spec.get("selector"), (spec["template"].get("metadata") or {}).get("labels")
    if selector is None:
        yield required("spec.selector")
    else:
        yield from selector_faults(selector, "spec.selector")
    if selector is not None and not spec.get("manualSelector"):
        yield from _check_generated(value, selector, labels or {})
    if selector is None or not selects(selector, labels or {}):
        yield invalid("spec.template.metadata.labels", in_order(labels), "`selector` does not match template `labels`")


def _check_generated(value: Json, selector: Json, labels: Json) -> Iterator[Cause]:
    """The labels that every Job gives its pods, by which alone it selects them."""
    metadata = value["metadata"]
    uid, name = metadata.get("uid", ""), metadata.get("name", "")
    own = {"controller-uid": uid, "job-name": name, _UID_LABEL: uid, _NAME_LABEL: name}
    for label, wanted in own.items():
        field = f"spec.template.metadata.labels[{label}]"
        if label not in labels:
            yield required(field, f"must be '{wanted}'")
        elif labels[label] != wanted:
            yield invalid(field, in_order(labels), f"must be '{wanted}'")
    if not selector_faults(selector, "") and not selects(selector, own):
        yield invalid("spec.selector", _in_order(selector), "`selector` not auto-generated")


def _in_order(selector: Json | None) -> Json | None:
    if not selector or "matchLabels" not in selector:
        return selector
    return {**selector, "matchLabels": in_order(selector["matchLabels"])}


def _check_job_spec(spec: Json, path: str) -> Iterator[Cause]:
    for name in _NUMBERS:
        yield from at_least_zero(spec, name, path)
    yield from choice(spec.get("completionMode"), f"{path}.completionMode", ("NonIndexed", "Indexed"))
    if spec.get("completionMode") == "Indexed" and spec.get("completions") is None:
        yield required(f"{path}.completions", "when completion mode is Indexed")
    yield from choice(
        spec.get("podReplacementPolicy"), f"{path}.podReplacementPolicy", ("Failed", "TerminatingOrFailed")
    )
    yield from check_template(spec["template"], f"{path}.template")
    field, restart = f"{path}.template.spec.restartPolicy", spec["template"]["spec"].get("restartPolicy", "")
    if restart in {"Always", ""}:
        yield required(field, 'valid values: "OnFailure", "Never"')
    elif restart not in _RESTARTS:
        yield unsupported(field, restart, _RESTARTS)


def check_job_update(value: Json, old: Json) -> Iterator[Cause]:
    """Refuses changes of a job's immutable fields."""
    spec, before = value["spec"], old["spec"]
    yield from immutable_faults(_in_order(spec.get("selector")), _in_order(before.get("selector")), "spec.selector")
    for name in _IMMUTABLE:
        yield from immutable_faults(spec.get(name), before.get(name), f"spec.{name}")
    yield from _check_completions(spec, before)
    if before.get("suspend") and not (old.get("status") or {}).get("startTime"):
        if _steered(spec["template"]) != _steered(before["template"]):
            yield invalid("spec.template.spec", spec["template"]["spec"], "field is immutable")
    elif spec["template"] != before["template"]:
        yield invalid("spec.template", spec["template"], "field is immutable")


def _check_completions(spec: Json, before: Json) -> Iterator[Cause]:
    """Only an indexed Job may get more or fewer, and as many pods at a time."""
    wanted, had = spec.get("completions"), before.get("completions")
    if spec.get("completionMode") != "Indexed":
        yield from immutable_faults(wanted, had, "spec.completions")
    elif wanted not in (None, had, spec.get("parallelism")):
        yield invalid("spec.completions", wanted, "can only be modified in tandem with spec.parallelism")


def _steered(template: Json) -> Json:
    """A job that was never started may still be steered to nodes."""
    spec = {name: part for name, part in template["spec"].items() if name not in _MUTABLE_OF_SUSPENDED}
    return {"spec": spec}


def cron_job_name_faults(name: str) -> list[str]:
    """Jobs add eleven characters to the name of their CronJob."""
    faults = list(DNS_SUBDOMAIN.faults(name))
    if len(name) > _LONGEST_CRON_JOB:
        faults.append(f"must be no more than {_LONGEST_CRON_JOB} characters")
    return faults


def check_cron_job(value: Json) -> Iterator[Cause]:
    """A CronJob."""
    spec = value["spec"]
    yield from _check_schedule(spec.get("schedule", ""))
    yield from _check_zone(spec.get("timeZone"))
    yield from at_least_zero(spec, "startingDeadlineSeconds", "spec")
    yield from choice(spec.get("concurrencyPolicy"), "spec.concurrencyPolicy", ("Allow", "Forbid", "Replace"))
    for name in ("successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        yield from at_least_zero(spec, name, "spec")
    yield from _check_job_template(spec["jobTemplate"]["spec"], "spec.jobTemplate.spec")


def _check_job_template(spec: Json, path: str) -> Iterator[Cause]:
    """The Jobs of a CronJob select their pods by themselves."""
    yield from _check_job_spec(spec, path)
    if spec.get("selector") is not None:
        yield invalid(f"{path}.selector", _in_order(spec["selector"]), "`selector` will be auto-generated")
    if spec.get("manualSelector"):
        yield unsupported(f"{path}.manualSelector", True, ("nil", "false"))


def _check_schedule(schedule: str) -> Iterator[Cause]:
    if not schedule:
        yield required("spec.schedule")
        return
    if fault := schedule_fault(schedule):
        yield invalid("spec.schedule", schedule, fault)
    if "TZ" in schedule:
        said = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        yield invalid("spec.schedule", schedule, said)


def _check_zone(zone: str | None) -> Iterator[Cause]:
    if zone is None:
        return
    if not zone:
        yield invalid("spec.timeZone", zone, "timeZone must be nil or non-empty string")
    elif zone.lower() == "local":
        yield invalid("spec.timeZone", zone, _EXPLICIT_ZONE)
    if zone and zone != "Local" and zone not in zoneinfo.available_timezones():
        yield invalid("spec.timeZone", zone, f"unknown time zone {zone}")


_COUNTED = ("succeeded", "failed")


def job_status(value: Json, old: Json) -> Iterator[Cause]:
    """Counts that only grow."""
    status, before = value.get("status") or {}, old.get("status") or {}
    yield from not_negative(status, "active", *_COUNTED)
    for name in _COUNTED:
        if status.get(name, 0) < before.get(name, 0):
            yield invalid(f"status.{name}", status.get(name, 0), f"cannot decrease the {name} counter")
