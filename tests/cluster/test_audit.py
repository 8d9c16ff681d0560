"""The audit log: every request, nobody's secrets."""

from __future__ import annotations

import asyncio
import json
import os
import resource
from pathlib import Path

import pytest

from navarch._base.clock import ManualClock
from navarch._base.tasks import cancel_and_wait
from navarch.cluster.server.pipeline.audit_log import AuditLog, is_long_running
from navarch.cluster.server.pipeline.audit_records import RotatingFile
from navarch.cluster.server.wire.request import ApiRequest, RequestInfo, User, request_info

ANN = User("ann", "u-1", ("system:authenticated",))
CREATE = ApiRequest(
    method="POST",
    path="/apis/apps/v1/namespaces/default/deployments",
    query={"fieldManager": ["kubectl"], "dryRun": ["All"]},
    headers={"authorization": "Bearer hidden", "user-agent": "kubectl/v1.36"},
    body=b'{"secret": "hidden"}',
)


def recorded(log: AuditLog, method: str, path: str, user: User = ANN, code: int = 200) -> None:
    request = ApiRequest(method=method, path=path)
    log.completed(request, request_info(request), user, code, 0.25)


async def test_a_record_is_an_event_of_kubernetes() -> None:
    """Who, what, when and what came of it, as audit.k8s.io/v1 has it at the level Metadata."""
    log = AuditLog(ManualClock())
    log.completed(CREATE, request_info(CREATE), ANN, 409, 0.5, impersonated=User("bob"), reason="AlreadyExists")
    (record,) = log.records()
    assert record.dry_run
    assert record.to_json() == {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "stage": "ResponseComplete",
        "requestURI": "/apis/apps/v1/namespaces/default/deployments?fieldManager=kubectl&dryRun=All",
        "verb": "create",
        "user": {"username": "ann", "uid": "u-1", "groups": ["system:authenticated"]},
        "impersonatedUser": {"username": "bob"},
        "userAgent": "kubectl/v1.36",
        "objectRef": {"resource": "deployments", "namespace": "default", "apiGroup": "apps", "apiVersion": "v1"},
        "responseStatus": {"metadata": {}, "code": 409, "status": "Failure", "reason": "AlreadyExists"},
        "requestReceivedTimestamp": "2029-12-31T23:59:59.500000Z",
        "stageTimestamp": "2030-01-01T00:00:00.000000Z",
    }


async def test_no_record_shows_a_secret() -> None:
    """Not from a body, not from a header, not from a query."""
    log = AuditLog(ManualClock())
    query = {"access_token": ["hidden"], "Password": ["hidden"], "watch": ["true"], "labelSelector": ["a=b c"]}
    request = ApiRequest(method="GET", path="/api/v1/pods", query=query, headers=dict(CREATE.headers), body=CREATE.body)
    log.completed(request, request_info(request), ANN, 200, 0.0)
    (record,) = log.records(verb="watch")
    assert "hidden" not in repr(record) + json.dumps(record.to_json())
    assert record.uri == "/api/v1/pods?access_token=REDACTED&Password=REDACTED&watch=true&labelSelector=a%3Db+c"


async def test_records_can_be_asked_for() -> None:
    """By any of their parts, oldest first; the impersonated user counts too."""
    log = AuditLog(ManualClock())
    recorded(log, "GET", "/api/v1/namespaces/a/pods/x")
    recorded(log, "GET", "/api/v1/namespaces/a/pods/x/log", User("bob"))
    recorded(log, "DELETE", "/api/v1/namespaces/b/pods/y", code=404)
    recorded(log, "GET", "/healthz")
    assert [record.name for record in log.records(resource="pods")] == ["x", "x", "y"]
    assert len(log.records(resource="pods", subresource="")) == 2
    assert [record.code for record in log.records(verb="delete", namespace="b", name="y")] == [404]
    assert [record.info.subresource for record in log.records(user="bob")] == ["log"]
    assert [record.uri for record in log.records(code=200, name="")] == ["/healthz"]
    assert log.records(resource="secrets") == []


async def test_a_long_request_is_recorded_when_it_begins_and_when_it_ends() -> None:
    """Both are there; records() shows the end unless asked otherwise."""
    log = AuditLog(ManualClock())
    request = ApiRequest(method="GET", path="/api/v1/pods", query={"watch": ["true"]})
    info = request_info(request)
    assert is_long_running(info)
    log.started(request, info, ANN, 200, 0.0)
    assert (log.records(), len(log.records(stage="ResponseStarted"))) == ([], 1)
    log.completed(request, info, ANN, 200, 30.0)
    assert [record.stage for record in log.records(stage="")] == ["ResponseStarted", "ResponseComplete"]


@pytest.mark.parametrize(
    ("subresource", "expected"), [("exec", True), ("proxy/a/b", True), ("log", True), ("status", False)]
)
def test_what_reaches_into_pods_is_long_running(subresource: str, expected: bool) -> None:
    """As Kubernetes counts it."""
    assert is_long_running(RequestInfo("get", "/", "", "v1", "a", "pods", subresource, "x")) == expected


async def test_the_memory_keeps_the_last_records() -> None:
    """And forgets the oldest."""
    log = AuditLog(ManualClock(), capacity=3)
    for number in range(5):
        recorded(log, "GET", f"/api/v1/namespaces/a/pods/{number}")
    assert [record.name for record in log.records()] == ["2", "3", "4"]
    assert log.dropped == 0


async def test_the_file_gets_every_record_as_a_line(tmp_path: Path) -> None:
    """A moment later, and the rest when the log ends."""
    clock, path = ManualClock(), tmp_path / "audit.jsonl"
    log = AuditLog(clock, RotatingFile(path))
    recorded(log, "GET", "/api/v1/namespaces/a/pods/first")
    async with asyncio.TaskGroup() as group:
        running = group.create_task(log.run())
        await clock.advance(0.2)
        async with asyncio.timeout(30):
            while not path.exists():  # a thread writes it
                await clock.settle()
        await clock.until_sleeping()
        recorded(log, "GET", "/api/v1/namespaces/a/pods/last")
        await cancel_and_wait(running)
    names = [json.loads(line)["objectRef"]["name"] for line in path.read_text().splitlines()]
    assert names == ["first", "last"]


async def test_a_disk_that_fails_is_told_once_and_waited_for(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Records wait, as far as there is room for them, and are written when the disk is back; requests go on."""
    folder = tmp_path / "missing"
    log = AuditLog(ManualClock(), RotatingFile(folder / "audit.jsonl"), capacity=3)
    for number in range(5):
        recorded(log, "GET", f"/api/v1/namespaces/a/pods/{number}")
        await log.flush()
    assert caplog.text.count("the audit log cannot be written") == 1
    assert "No such file or directory" in str(log.fault)
    folder.mkdir()
    await log.flush()
    assert (log.fault, log.dropped) == (None, 2)
    assert names_in(folder / "audit.jsonl") == ["2", "3", "4"]
    assert "the audit log is written again; 2 records were dropped" in caplog.text


async def test_a_full_disk_leaves_no_half_line(tmp_path: Path) -> None:
    """What was begun is taken back; the same lines come whole when there is room."""
    path = tmp_path / "audit.jsonl"
    log = AuditLog(ManualClock(), RotatingFile(path))
    recorded(log, "GET", "/api/v1/namespaces/a/pods/first")
    await log.flush()
    size = path.stat().st_size
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    recorded(log, "GET", "/api/v1/namespaces/a/pods/last")
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 10, usual[1]))
    try:
        await log.flush()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)
    assert (path.stat().st_size, log.dropped) == (size, 0)
    assert "File too large" in str(log.fault)
    await log.flush()
    assert names_in(path) == ["first", "last"]


async def test_the_file_is_rotated_by_size(tmp_path: Path) -> None:
    """As many bytes as are allowed, in as many files; the oldest records go."""
    path = tmp_path / "audit.log"
    log = AuditLog(ManualClock(), RotatingFile(path, size=2000, backups=2))
    for number in range(100):
        recorded(log, "GET", f"/api/v1/namespaces/a/pods/{number}")
        if number % 7 == 0:
            await log.flush()
    await log.flush()
    files = [tmp_path / name for name in ("audit.log.2", "audit.log.1", "audit.log")]
    assert not (tmp_path / "audit.log.3").exists()
    assert all(0 < file.stat().st_size <= 2000 for file in files)
    names = [int(name) for file in files for name in names_in(file)]
    assert names == list(range(names[0], 100))
    assert path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("kind", ["folder", "fifo"])
async def test_something_else_in_the_place_of_the_file_holds_up_nothing(tmp_path: Path, kind: str) -> None:
    """It is told; records wait until it is gone."""
    path = tmp_path / "audit.log"
    path.mkdir() if kind == "folder" else os.mkfifo(path)
    log = AuditLog(ManualClock(), RotatingFile(path))
    recorded(log, "GET", "/api/v1/namespaces/a/pods/x")
    await log.flush()
    assert "the audit log cannot be written" in str(log.fault)
    path.rmdir() if kind == "folder" else path.unlink()
    await log.flush()
    assert (names_in(path), log.fault) == (["x"], None)


async def test_bytes_that_are_no_text_are_recorded(tmp_path: Path) -> None:
    """In a header, a path, a query, a user: of each the rest can be read."""
    path, odd = tmp_path / "audit.log", "a\udcffb\ud800"
    log = AuditLog(ManualClock(), RotatingFile(path))
    request = ApiRequest(method="GET", path=f"/{odd}", query={odd: [odd]}, headers={"user-agent": "kubectl\udcff"})
    log.completed(request, request_info(request), User(odd, groups=(odd,)), 200, 0.0, audit_id=odd)
    recorded(log, "GET", "/api/v1/namespaces/a/pods/next")
    await log.flush()
    first, second = map(json.loads, path.read_text().splitlines())
    assert first["userAgent"] == "kubectl\ufffd"
    assert first["user"]["username"].startswith("a")
    assert second["objectRef"]["name"] == "next"


def names_in(path: Path) -> list[str]:
    return [json.loads(line)["objectRef"]["name"] for line in path.read_text().splitlines()]


async def test_a_disk_that_does_not_keep_up_costs_the_oldest_lines(tmp_path: Path) -> None:
    """Memory stays bounded; how many lines were given up is known."""
    path = tmp_path / "audit.jsonl"
    log = AuditLog(ManualClock(), RotatingFile(path), capacity=2)
    for number in range(5):
        recorded(log, "GET", f"/api/v1/namespaces/a/pods/{number}")
    await log.flush()
    assert (log.dropped, len(path.read_text().splitlines())) == (3, 2)


async def test_a_very_long_request_is_cut() -> None:
    """Thousands of records are in memory: none of them is much longer than others."""
    log = AuditLog(ManualClock())
    long = "x" * 100_000
    for path, query in ((f"/api/v1/namespaces/{long}/pods/{long}", ""), ("/version", f"{long}={long}")):
        request = ApiRequest(method="GET", path=path, query={long: [long]} if query else {}, raw_query=query)
        log.completed(request, request_info(request), ANN, 200, 0.0, audit_id=long)
    assert all(len(json.dumps(record.to_json())) < 10_000 for record in log.records())
    assert [record.uri[-12:] for record in log.records()] == ["...TRUNCATED", "?TRUNCATED=200001"[-12:]]


async def test_a_very_long_user_agent_is_cut() -> None:
    """As Kubernetes cuts it."""
    log = AuditLog(ManualClock())
    request = ApiRequest(method="GET", path="/", headers={"user-agent": "x" * 5000})
    log.completed(request, request_info(request), None, 401, 0.0)
    assert log.records()[0].user_agent == f"{'x' * 1024}...TRUNCATED"
    assert log.records()[0].to_json()["user"] == {}
