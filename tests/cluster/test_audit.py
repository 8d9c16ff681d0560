"""The audit log: every request, nobody's secrets."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from navarch._base.clock import ManualClock
from navarch._base.tasks import cancel_and_wait
from navarch.cluster.server.audit import AuditLog, is_long_running
from navarch.cluster.server.request import ApiRequest, RequestInfo, User, request_info

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
    log = AuditLog(clock, path)
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


async def test_a_disk_that_fails_is_counted_and_not_fatal(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """What could not be written is lost, said and counted; requests go on."""
    log = AuditLog(ManualClock(), tmp_path / "missing" / "audit.jsonl")
    recorded(log, "GET", "/healthz")
    await log.flush()
    assert log.dropped == 1
    assert "1 records of the audit log could not be written" in caplog.text
    assert len(log.records()) == 1


async def test_a_disk_that_does_not_keep_up_costs_the_oldest_lines(tmp_path: Path) -> None:
    """Memory stays bounded; how many lines were given up is known."""
    path = tmp_path / "audit.jsonl"
    log = AuditLog(ManualClock(), path, capacity=2)
    for number in range(5):
        recorded(log, "GET", f"/api/v1/namespaces/a/pods/{number}")
    await log.flush()
    assert (log.dropped, len(path.read_text().splitlines())) == (3, 2)


async def test_a_very_long_user_agent_is_cut() -> None:
    """As Kubernetes cuts it."""
    log = AuditLog(ManualClock())
    request = ApiRequest(method="GET", path="/", headers={"user-agent": "x" * 5000})
    log.completed(request, request_info(request), None, 401, 0.0)
    assert log.records()[0].user_agent == f"{'x' * 1024}...TRUNCATED"
    assert log.records()[0].to_json()["user"] == {}
