"""Differences that are known and stay, each with its reason; docs/embedded-server.md lists them for users."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from differential.steps import PATCHES, Difference, Step

_WORDS = frozenset({"body.message", "body.details.causes"}) | {f"body.details.causes[{index}]" for index in range(9)}


@dataclass(frozen=True)
class Known:
    """A difference that is no fault."""

    reason: str
    matches: Callable[[Step, Difference], bool]
    is_lasting: bool = False
    """Whether the objects are different from then on."""


def _lacks_go_difference(_step: Step, difference: Difference) -> bool:
    ours, theirs = difference.embedded, difference.real
    return isinstance(ours, str) and isinstance(theirs, str) and theirs.startswith(f"{ours}\n")


def _is_description(_step: Step, difference: Difference) -> bool:
    return "columnDefinitions" in difference.where and difference.where.endswith(".description")


def _shows_go_struct(_step: Step, difference: Difference) -> bool:
    """An immutable value is shown by Go as its internal type: `{"Containers": ...}`."""
    texts = (difference.embedded, difference.real)
    return all(isinstance(text, str) and "Invalid value: {" in text and "immutable" in text for text in texts)


def _creates_by_status(step: Step, difference: Difference) -> bool:
    kinds = ("404 services ", "404 validatingadmissionpolicies.")
    return step.path.endswith("/status") and str(difference.embedded).startswith(kinds)


def _applies_null(step: Step, _difference: Difference) -> bool:
    return "example.com" in step.path and step.media_type == PATCHES["apply"] and ": null" in step.text


def _allocates_for_nobody(_step: Step, difference: Difference) -> bool:
    return "failed to allocate IP: IPAddress" in str(difference.real)


def _is_told_by_the_converter(step: Step, difference: Difference) -> bool:
    said = ("unrecognized type: ", "cannot restore ", "cannot convert ")
    return step.media_type == PATCHES["strategic"] and any(each in str(difference.real) for each in said)


def _is_one_of_many_misfits(_step: Step, difference: Difference) -> bool:
    """Go visits the fields of an object in any order, and stops at the first that the schema does not know."""
    for mark, said in (("): ", "field not declared in schema"), ("json: cannot unmarshal ", " into Go struct field ")):
        heads = {str(each).partition(mark)[0] for each in (difference.embedded, difference.real)}
        if len(heads) == 1 and said in str(difference.real):
            return True
    return False


def _refuses_definition(step: Step, difference: Difference) -> bool:
    return "/customresourcedefinitions" in step.path and difference.where in _WORDS


def _has_labels_at_once(step: Step, difference: Difference) -> bool:
    is_written = difference.where.endswith(".metadata.resourceVersion")
    is_refused = "metadata.labels (" in str(difference.embedded) and "metadata.labels (" not in str(difference.real)
    return "/jobs" in step.path and (is_written or is_refused)


def _is_of_another_kind(_step: Step, difference: Difference) -> bool:
    told = _told(difference.embedded)
    is_told_alone = told.startswith("kind (FieldValueInvalid)") or " is invalid: kind: Invalid value: " in told
    return is_told_alone or told.endswith(": unknown conversion")


def _has_wrong_address(_step: Step, difference: Difference) -> bool:
    told = re.sub(r'^Service "\w*" is invalid: ', "", _told(difference.real))
    return difference.where in _WORDS and told.startswith("spec.clusterIPs[0]")


def _told(found: object) -> str:
    """A message, or the causes that make one."""
    return "".join(map(str, found)) if isinstance(found, list) else str(found)


def _lists_what_was(step: Step, difference: Difference) -> bool:
    has_version = any(name == "resourceVersion" and value for name, value in step.query)
    return step.method == "GET" and has_version and ("items" in difference.where or "rows" in difference.where)


def _is_too_large(step: Step, difference: Difference) -> bool:
    is_refused = "body." in difference.where and "2147483648" in step.text
    is_told = "json: cannot unmarshal number 2147483648" in str(difference.embedded)
    return is_told if step.media_type == PATCHES["apply"] else is_refused and step.media_type == PATCHES["strategic"]


def _has_prefix(step: Step, difference: Difference) -> bool:
    is_changed = step.method != "POST" and '"generateName": "Bad_"' in step.text
    return is_changed and difference.where in _WORDS


def _is_for_two_families(_step: Step, difference: Difference) -> bool:
    told = ("not configured for dual-stack services", 'Invalid value: "IPv6": not configured on this cluster')
    return any(words in str(difference.real) for words in told)


def _selects_by_what_versions_share(step: Step, difference: Difference) -> bool:
    told = 'spec.selectableFields: Invalid value: "": may only be set when validations.schema is included'
    return "/customresourcedefinitions" in step.path and told in str(difference.real)


def _is_no_scale(step: Step, difference: Difference) -> bool:
    return step.path.endswith("/scale") and "no kind is registered for the type v1.Scale" in str(difference.real)


def _writes_claim_twice(step: Step, difference: Difference) -> bool:
    return "/persistentvolumeclaims/" in step.path and difference.where.endswith(".metadata.resourceVersion")


def _has_no_name(step: Step, difference: Difference) -> bool:
    is_new = step.method == "POST" and step.path.endswith("/limitranges")
    return is_new and "metadata.name" in str(difference.embedded) and "name or generateName" not in str(difference.real)


def _is_on_no_node(step: Step, difference: Difference) -> bool:
    return step.path.endswith("/resize") and 'node "n" not found' in str(difference.real)


def _shows_nothing_of_it(step: Step, difference: Difference) -> bool:
    is_dry = '"All"' in step.text or ("dryRun", "All") in step.query
    return step.method == "DELETE" and is_dry and difference.where in {"body.metadata", "body.spec", "body.data"}


def _hides_password(_step: Step, difference: Difference) -> bool:
    return '"u:p": user information is not permitted' in _told(difference.real)


def _shows_empty_list(_step: Step, difference: Difference) -> bool:
    texts = (difference.embedded, difference.real)
    return all("Invalid value: " in str(text) for text in texts) and _without_empty(texts[0]) == _without_empty(
        texts[1]
    )


def _without_empty(text: object) -> str:
    return str(text).replace("Invalid value: []", "Invalid value: null")


KNOWN: tuple[Known, ...] = (
    Known("the first change of a claim that changes nothing is no write", _writes_claim_twice, is_lasting=True),
    Known("a LimitRange without a name is refused, where Kubernetes makes one up", _has_no_name, is_lasting=True),
    Known("a pod of a node that is not there may be resized", _is_on_no_node),
    Known("a dry run of the deletion of an object that loses its last finalizer shows it", _shows_nothing_of_it),
    Known("the password in the URL of a webhook is not told", _hides_password),
    Known("a list that was sent empty is shown as null", _shows_empty_list),
    Known("a Scale of a custom object that is no JSON object is refused for its missing name", _is_no_scale),
    Known("a Service or an admission policy is not created by a write of its status", _creates_by_status),
    Known("of several misfits in what is applied, all are told", _is_one_of_many_misfits),
    Known(
        "null in what is applied to a custom object is left out, where Kubernetes refuses it",
        _applies_null,
        is_lasting=True,
    ),
    Known("the labels that a Job has from its template are stored at once", _has_labels_at_once, is_lasting=True),
    Known("a number that is too large is refused when it is merged, where Kubernetes wraps it", _is_too_large),
    Known("an object of another kind is refused for that, whatever else is wrong", _is_of_another_kind),
    Known("a list that may be old is new", _lists_what_was),
    Known("the prefix of a name is checked when the object is created", _has_prefix),
    Known("a headless Service without a selector may get one", _is_for_two_families),
    Known(
        "versions with the same selectable fields and different schemas are taken, where Kubernetes looks for a common one",
        _selects_by_what_versions_share,
    ),
    Known("a Service without a name is refused for that alone", _allocates_for_nobody),
    Known("a strategic merge patch that does not fit is told in the words of JSON", _is_told_by_the_converter),
    Known("a Service with a wrong IP is refused for what else is wrong, too", _has_wrong_address),
    Known("immutable values are shown as JSON, not as Go's internal types", _shows_go_struct),
    Known("refused definitions name the right fields in our own words", _refuses_definition),
    Known("the columns of tables have no descriptions", _is_description),
    Known("messages about immutable fields lack the difference that Go prints", _lacks_go_difference),
)


def known_as(step: Step, difference: Difference) -> Known | None:
    """As what a difference is listed; None if it is not."""
    return next((known for known in KNOWN if known.matches(step, difference)), None)
