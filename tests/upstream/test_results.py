"""What Kubernetes' own tests reported."""

from __future__ import annotations

from pathlib import Path

from upstream.results import Case, cases

REPORT = """<testsuites><testsuite>
<testcase name="[SynchronizedBeforeSuite]" status="passed" time="1"></testcase>
<testcase name="[It] [sig-auth] works" status="passed" time="0.5"></testcase>
<testcase name="[It] [sig-auth] fails" status="failed" time="2"><failure message="expected this, got that"></failure></testcase>
<testcase name="[It] [sig-auth] is left out" status="skipped" time="0"></testcase>
</testsuite></testsuites>"""


def test_only_tests_that_were_run_count(tmp_path: Path) -> None:
    """With what was wrong with those that failed."""
    report = tmp_path / "junit.xml"
    report.write_text(REPORT)
    assert cases(report) == [
        Case("[sig-auth] works", 0.5, ""),
        Case("[sig-auth] fails", 2.0, "expected this, got that"),
    ]
