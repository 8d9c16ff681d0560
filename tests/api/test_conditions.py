"""Conditions: what can be said of an object, and since when."""

from datetime import UTC, datetime, timedelta

import pytest

from navarch.api import Condition, Status, decode, encode, set_condition
from navarch.api.meta import ConditionStatus
from navarch.errors import InvalidValueError

START = datetime(2030, 1, 1, tzinfo=UTC)


def condition(
    status: ConditionStatus = "True",
    minutes: int = 0,
    *,
    kind: str = "Ready",
    reason: str = "Up",
    message: str = "",
) -> Condition:
    when = START + timedelta(minutes=minutes)
    return Condition(type=kind, status=status, reason=reason, message=message, last_transition_time=when)


def test_first_condition_is_added() -> None:
    """And found again."""
    status = Status()
    assert status.set_condition(condition())
    assert status.condition("Ready") == condition()
    assert status.is_true("Ready")
    assert status.condition("Other") is None
    assert not status.is_true("Other")


def test_same_condition_is_no_change() -> None:
    """However late it is said again."""
    status = Status(conditions=[condition()])
    assert not status.set_condition(condition(minutes=5))
    assert status.conditions == [condition()]


def test_transition_time_is_kept_while_the_status_is() -> None:
    """A new reason or message is a change, but no transition."""
    status = Status(conditions=[condition()])
    later = condition(minutes=5, reason="Better", message="all is well")
    assert status.set_condition(later)
    assert status.conditions == [condition(reason="Better", message="all is well")]
    assert later.last_transition_time == START + timedelta(minutes=5)


def test_transition_time_moves_with_the_status() -> None:
    """That is what it is for."""
    status = Status(conditions=[condition()])
    assert status.set_condition(condition("False", 5))
    assert status.conditions == [condition("False", 5)]
    assert not status.is_true("Ready")


def test_transition_time_is_cut_to_seconds() -> None:
    """As the server writes it, so that what comes back is what was set; the one given stays as it is."""
    status, given = Status(), condition()
    given.last_transition_time = START + timedelta(microseconds=7)
    assert status.set_condition(given)
    assert status.conditions == [condition()]
    assert given.last_transition_time.microsecond == 7


def test_transition_time_without_a_zone_is_refused() -> None:
    """The server would not take it."""
    given = condition()
    given.last_transition_time = START.replace(tzinfo=None)
    with pytest.raises(InvalidValueError, match="expected a datetime with a time zone"):
        Status().set_condition(given)


def test_other_conditions_stay_where_they_are() -> None:
    """In their order."""
    status = Status(conditions=[condition(kind="A"), condition(kind="B"), condition(kind="C")])
    status.set_condition(condition("Unknown", 5, kind="B"))
    assert [(known.type, known.status) for known in status.conditions] == [
        ("A", "True"),
        ("B", "Unknown"),
        ("C", "True"),
    ]


def test_bare_list_of_conditions_is_served_too() -> None:
    """As built-in kinds have them."""
    known: list[Condition] = []
    assert set_condition(known, condition())
    assert not set_condition(known, condition(minutes=1))


def test_condition_comes_back_as_it_was_sent() -> None:
    """With its time in UTC."""
    wire = encode(condition())
    assert b'"lastTransitionTime":"2030-01-01T00:00:00Z"' in wire
    assert decode(Condition, wire) == condition()
