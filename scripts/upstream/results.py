"""What the tests reported, as counts and as names of those that failed."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import NamedTuple

__all__ = ["Case", "cases"]


class Case(NamedTuple):
    """One test that was run: `fault` is empty if it passed."""

    name: str
    seconds: float
    fault: str


def cases(report: Path) -> list[Case]:
    """The tests of a JUnit report that were run; those that were skipped are not among them."""
    root = ET.parse(report).getroot()  # noqa: S314 - written by the tests that were just run
    found = (each for each in root.iter("testcase") if each.get("status") in {"passed", "failed", "timedout"})
    return [_case(each) for each in found if each.get("name", "").startswith("[It]")]


def _case(element: ET.Element) -> Case:
    failure = element.find("failure")
    fault = "" if failure is None else failure.get("message") or failure.text or "failed"
    return Case(element.get("name", "").removeprefix("[It] "), float(element.get("time", "0")), fault.strip())
