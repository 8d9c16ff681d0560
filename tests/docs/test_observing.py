"""What docs/observing.md says of traces, of metrics and of the fields of a record is so."""

from __future__ import annotations

import json
import logging
import re
import subprocess
import sys
from types import ModuleType
from typing import Any

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from docs.pages import DOCS, Trial, blocks, module_of
from navarch.observe import logs, traces

PAGE = (DOCS / "observing.md").read_text()


@pytest.fixture(scope="module")
def controllers(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    return module_of("controllers.md", tmp_path_factory.mktemp("controllers"))


async def test_spans_are_those_of_the_table(controllers: ModuleType) -> None:
    """From the watch event to the request, by the wiring that the page shows."""
    names: dict[str, Any] = {}
    (source,) = [block for block in blocks("observing.md", "python") if "def trace_to" in block]
    exec(compile(source, "observing.md", "exec", dont_inherit=True), names)
    exporter = InMemorySpanExporter()
    provider = names["trace_to"](exporter)
    try:
        await publish_one(controllers)
    finally:
        traces.disable()
        provider.shutdown()
    spans = {span.name: span for span in exporter.get_finished_spans()}
    for name, attributes in re.findall(r"^\| `(watch event|reconcile|GET)`\S* .*?\| (.*?) \|", PAGE, re.MULTILINE):
        assert set(re.findall(r"`(\S+)`", attributes)) == set(spans[name].attributes or {}), name
    assert spans["reconcile"].links[0].context == spans["watch event"].context
    assert spans["PATCH"].parent == spans["reconcile"].context


def test_metric_of_the_page_is_shown() -> None:
    """Where those of the runtime are. In a process of its own: the registry is the whole process's."""
    (source,) = [block for block in blocks("observing.md", "python") if "REGISTRY" in block]
    look = "from navarch.observe.metrics import Metrics; print(Metrics(REGISTRY).exposition()[0].decode())"
    run = subprocess.run([sys.executable, "-c", f"{source}\n{look}"], capture_output=True, text=True, check=True)
    assert 'backups_total{result="success"} 1.0' in run.stdout


async def publish_one(controllers: ModuleType) -> None:
    trial = Trial(controllers.publish)
    async with trial.running():
        await trial.client.create(controllers.Website(name="roses", spec=controllers.WebsiteSpec(title="Roses")))
        await trial.until_reconciled(1)


async def test_records_of_a_reconcile_carry_the_fields_of_the_table(
    controllers: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those of another library too."""

    async def telling(website: Any, ctx: Any) -> None:
        logging.getLogger("another.library").warning("hello")

    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    monkeypatch.setattr(controllers.publish, "reconcile", telling)
    logs.setup("json", level="WARNING")
    await publish_one(controllers)
    printed = map(json.loads, capsys.readouterr().err.splitlines())
    (line,) = [each for each in printed if each["event"] == "hello"]  # the watchdog tells of a machine that stalls
    fields = re.findall(r"^\| `(controller|object|reconcile_id|reason)` \|", PAGE, re.MULTILINE)
    assert len(fields) == 4
    assert set(fields) <= line.keys()
    assert line["object"] == "Website default/roses"
    assert all(line[field] for field in fields)
