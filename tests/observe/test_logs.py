"""Structured logs have their fields, form and level."""

import asyncio
import io
import json
import logging
import re
import sys
from typing import Any

import pytest

from navarch.api import Dynamic
from navarch.errors import InvalidValueError
from navarch.k8s.core.v1 import Secret
from navarch.observe.logs import Log, logger, setup, within


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


def line(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    (only,) = lines(capsys)
    return only


def test_record_is_a_line_of_json(capsys: pytest.CaptureFixture[str]) -> None:
    """Where stderr is no terminal, a line has time, level, logger, event and fields, in that order."""
    setup()
    logger("app").info("scaled up", replicas=3)
    written = line(capsys)
    assert list(written) == ["time", "level", "logger", "event", "replicas"]
    assert written | {"time": ""} == {"time": "", "level": "info", "logger": "app", "event": "scaled up", "replicas": 3}


def test_time_is_rfc_3339_in_utc(capsys: pytest.CaptureFixture[str]) -> None:
    """The time has milliseconds."""
    setup()
    record = logging.LogRecord("app", logging.INFO, "", 1, "hello", None, None)
    record.created = 1893456000.25
    logging.getLogger("app").handle(record)
    assert line(capsys)["time"] == "2030-01-01T00:00:00.250Z"


def test_bound_fields_are_on_every_record(capsys: pytest.CaptureFixture[str]) -> None:
    """The newest value of a field counts; the parent log is unchanged."""
    setup()
    outer = logger("app").bind(controller="memcached", reason="start")
    inner = outer.bind(object="Memcached default/cache", reason="changed")
    inner.warning("one")
    inner.error("two", reason="retry")
    outer.info("three")
    one, two, three = lines(capsys)
    assert (one["controller"], one["object"], one["reason"]) == ("memcached", "Memcached default/cache", "changed")
    assert two["reason"] == "retry"
    assert three["reason"] == "start"
    assert "object" not in three


def test_exception_is_one_field_with_its_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    """The traceback includes causes; the record stays one line."""
    setup()
    try:
        raise ValueError("inner")
    except ValueError:
        logger("app").exception("reconcile failed", controller="memcached")
    written = line(capsys)
    assert written["level"] == "error"
    assert written["exception"].startswith("Traceback (most recent call last):")
    assert written["exception"].endswith("ValueError: inner")


def test_records_of_other_libraries_have_the_same_form(capsys: pytest.CaptureFixture[str]) -> None:
    """Their messages have the arguments filled in."""
    setup()
    logging.getLogger("navarch.client").warning("API server: %s", "deprecated")
    written = line(capsys)
    assert (written["logger"], written["event"]) == ("navarch.client", "API server: deprecated")


def test_records_of_other_libraries_carry_surrounding_fields(capsys: pytest.CaptureFixture[str]) -> None:
    """Fields apply inside the block alone; a record's own fields win."""
    setup()
    with within(logger("app").bind(object="Memcached default/cache", reason="changed")):
        logging.getLogger("navarch.client").warning("slow")
        logger("other").warning("own", reason="mine")
    logging.getLogger("navarch.client").warning("outside")
    slow, own, outside = lines(capsys)
    assert slow["object"] == own["object"] == "Memcached default/cache"
    assert own["reason"] == "mine"
    assert "object" not in outside


async def test_surrounding_fields_belong_to_one_task(capsys: pytest.CaptureFixture[str]) -> None:
    """Concurrent reconciles do not mix their fields."""
    setup()
    meet = asyncio.Barrier(2)

    async def work(name: str) -> None:
        with within(logger("app").bind(object=name)):
            await meet.wait()
            logging.getLogger("lib").warning("of %s", name)

    async with asyncio.TaskGroup() as group:
        for name in ("a", "b"):
            group.create_task(work(name))
    assert {(written["event"], written["object"]) for written in lines(capsys)} == {("of a", "a"), ("of b", "b")}


def test_level_decides_what_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    """The default level is INFO."""
    setup()
    logger("app").debug("hidden")
    setup(level="debug")
    logger("app").debug("shown")
    assert line(capsys)["event"] == "shown"


def test_second_setup_replaces_the_first(capsys: pytest.CaptureFixture[str]) -> None:
    """Handlers of others stay."""
    others = logging.NullHandler()
    logging.getLogger().addHandler(others)
    setup()
    setup()
    logger("app").info("once")
    assert line(capsys)["event"] == "once"
    assert others in logging.getLogger().handlers


class Unspeakable:
    asked = 0

    def __str__(self) -> str:
        Unspeakable.asked += 1
        raise ValueError("no text")


def test_values_become_text_only_when_written(capsys: pytest.CaptureFixture[str]) -> None:
    """A value whose text fails does not lose the record."""
    setup()
    Unspeakable.asked = 0
    log = logger("app").bind(object=Unspeakable())
    log.debug("nobody sees this")
    assert Unspeakable.asked == 0
    log.info("seen")
    assert line(capsys)["object"] == "<Unspeakable whose text raised ValueError>"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (1.5, 1.5),
        (float("nan"), "nan"),
        (None, None),
        (True, True),
        (2**80, 2**80),
        ("ö\n\udc80", "ö\n\udc80"),
        (OSError("gone"), "OSError: gone"),
        ({"a": (1, {2})}, {"a": [1, [2]]}),
        (logging.NullHandler(), "<NullHandler (NOTSET)>"),
    ],
)
def test_any_value_can_be_written(value: object, shown: object, capsys: pytest.CaptureFixture[str]) -> None:
    """Plain data is JSON, other values are text."""
    setup()
    logger("app").info("here", value=value)
    assert line(capsys)["value"] == shown


@pytest.mark.parametrize("form", ["json", "console"])
@pytest.mark.parametrize(
    "value",
    [
        b"hunter2",
        {"password": b"hunter2"},
        Secret(name="s", string_data={"password": "hunter2"}),
        [Secret(name="s", data={"password": b"hunter2"})],
        Dynamic({"apiVersion": "v1", "kind": "Secret", "metadata": {}, "data": {"password": "aHVudGVyMg=="}}),
    ],
)
def test_secrets_are_not_written(value: object, form: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither bytes nor masked fields of objects are written."""
    setup(form)
    logger("app").info("read", value=value)
    written = capsys.readouterr().err
    assert "read" in written
    assert "hunter2" not in written
    assert "aHVudGVyMg" not in written


def test_field_with_a_name_of_ours_is_kept_apart(capsys: pytest.CaptureFixture[str]) -> None:
    """A field cannot hide the time or the level of the record."""
    setup()
    logger("app").info("read", level=9, event="added")
    written = line(capsys)
    assert (written["level"], written["level_"], written["event"], written["event_"]) == ("info", 9, "read", "added")


def test_terminal_gets_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Text with control characters or spaces is quoted."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[33mWARNING" in on_terminal(monkeypatch)


def test_no_color_is_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    """NO_COLOR removes colours and nothing else (no-color.org)."""
    monkeypatch.setenv("NO_COLOR", "1")
    written = on_terminal(monkeypatch)
    assert re.fullmatch(
        r"\S+Z WARNING odd\\n event object=\"Memcached default/cache\" text=\"\\u001b\[2J\" count=3 \(app\)\n", written
    )


def on_terminal(monkeypatch: pytest.MonkeyPatch) -> str:
    """What a terminal would be sent."""

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    setup()
    logger("app").warning("odd\n event", object="Memcached default/cache", text="\x1b[2J", count=3)
    return terminal.getvalue()


def test_console_shows_the_traceback_below(capsys: pytest.CaptureFixture[str]) -> None:
    """The traceback follows the line, as in Python."""
    setup("console")
    try:
        raise KeyError("spec")
    except KeyError:
        logger("app").exception("failed")
    first, second, *_, last = capsys.readouterr().err.splitlines()
    assert "failed" in first
    assert second == "Traceback (most recent call last):"
    assert last == "KeyError: 'spec'"


@pytest.mark.parametrize(("form", "level"), [("xml", "INFO"), ("json", "LOUD")])
def test_unknown_format_or_level_is_refused(form: Any, level: str) -> None:
    """The error lists the known ones."""
    with pytest.raises(InvalidValueError, match=r"expected a log (format|level) \("):
        setup(form, level)


def test_record_knows_who_wrote_it(caplog: pytest.LogCaptureFixture) -> None:
    """Handlers of others show the caller's line."""
    logger("app").warning("here")
    assert caplog.records[0].funcName == "test_record_knows_who_wrote_it"


def test_fields_are_those_that_were_given() -> None:
    """`record.fields` has the values, not their texts."""
    log: Log = logger("app").bind(a=[1])
    assert log.bind(b=2).fields == {"a": [1], "b": 2}


def test_handlers_of_others_show_the_fields_too(caplog: pytest.LogCaptureFixture) -> None:
    """The message has the record's own fields first; its template is the event alone."""
    log = logger("app").bind(controller="memcached", reason="it came")
    log.warning("100% failed", why="no such file", reason="retry", token=b"secret")
    (record,) = caplog.records
    assert record.getMessage() == ('100% failed why="no such file" reason=retry token="<6 bytes>" controller=memcached')
    assert record.msg == "100%% failed%s"


def test_cause_of_a_failure_comes_before_the_other_fields(capsys: pytest.CaptureFixture[str]) -> None:
    """The field `why` is the first one of a line."""
    setup("json")
    logger("test").bind(controller="a", reason="b").error("failed", place="c", why="no disk")
    (line,) = capsys.readouterr().err.splitlines()
    assert list(json.loads(line)) == ["time", "level", "logger", "event", "why", "controller", "reason", "place"]
