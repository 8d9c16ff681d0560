"""The webhook servers that are measured, and the load on them: each is a process of its own, with a certificate in files."""

from __future__ import annotations

import http.client
import json
import os
import ssl
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from contestants import CONTROLLER_RUNTIME, KOPF, OURS, PEER, REVIEW_LOAD
from measuring import Run, Worker
from rig.certificates import Authority
from rig.ports import reserved
from rig.waiting import wait_for
from widgets import GROUP, NAMESPACE, PLURAL, VERSION

HERE = Path(__file__).parent.parent
_CONNECTIONS = 16
_START_SECONDS = 60.0
_TICKS = os.sysconf("SC_CLK_TCK")
_UID = "00000000-0000-0000-0000-000000000000"
"""The load generator puts the number of the request in its place."""
_COMMANDS: Mapping[str, list[str]] = {
    OURS: [sys.executable, "-m", "webhooks.ours"],
    KOPF: [sys.executable, "-m", "webhooks.kopf_peer"],
    CONTROLLER_RUNTIME: [str(PEER.path), "webhook"],
}
_CONVERTING: Mapping[str, list[str]] = {
    OURS: [sys.executable, "-m", "webhooks.ours_conversion"],
    CONTROLLER_RUNTIME: _COMMANDS[CONTROLLER_RUNTIME],
}
_PATHS: Mapping[str, tuple[str, str]] = {
    OURS: (f"/validate/check.{PLURAL}.{GROUP}", f"/mutate/default.{PLURAL}.{GROUP}"),
    KOPF: ("/validate", "/mutate"),
    CONTROLLER_RUNTIME: ("/validate", "/mutate"),
}


@dataclass(frozen=True, slots=True)
class Hall:
    """Where the servers run: a folder with their certificate, an API server, and the reviews for them."""

    folder: Path
    kubeconfig: Path
    widget: dict[str, Any]

    def __post_init__(self) -> None:
        Authority(self.folder).serving("tls", ["127.0.0.1"])

    @contextmanager
    def serving(self, name: str) -> Iterator[ReviewServer]:
        """Runs one server; it answers admission reviews."""
        with self._running(_COMMANDS[name]) as server:
            server.reviews.write_text("".join(f"{json.dumps(each)}\n" for each in self._reviews(*_PATHS[name])))
            wait_for(f"an answer of {name}", server.answers, seconds=_START_SECONDS)
            yield server

    @contextmanager
    def converting(self, name: str) -> Iterator[ReviewServer]:
        """Runs one server; it answers conversion reviews."""
        with self._running(_CONVERTING[name]) as server:
            wait_for(f"an answer of {name}", lambda: server.post("/convert", b"{}")[0], seconds=_START_SECONDS)
            yield server

    @contextmanager
    def _running(self, command: list[str]) -> Iterator[ReviewServer]:
        with reserved(1) as (port,):
            environment = {
                "BENCH_CERTIFICATES": str(self.folder),
                "BENCH_PORT": str(port),
                "KUBECONFIG": str(self.kubeconfig),
                "PYTHONPATH": str(HERE),
            }
            with Worker(command, environment) as worker:
                yield ReviewServer(worker, port, self.folder)

    def _reviews(self, validate: str, mutate: str) -> Iterator[dict[str, Any]]:
        """Yields two validations and a mutation in turns; every second of each is of an update."""
        for operation in ("CREATE", "UPDATE"):
            for path, image in ((validate, True), (mutate, False), (validate, True)):
                widget = self.widget if image else _without_image(self.widget)
                body = json.dumps(_review(operation, widget), separators=(",", ":"))
                yield {"path": path, "body": body, "patched": path == mutate}


@dataclass(frozen=True, slots=True)
class ReviewServer:
    """A server that runs."""

    worker: Worker
    port: int
    folder: Path

    @property
    def reviews(self) -> Path:
        """The file with the reviews that it is sent."""
        return self.folder / "reviews.jsonl"

    def answers(self) -> bool:
        """Whether it answers a review of each kind."""
        lines = [json.loads(line) for line in self.reviews.read_text().splitlines()]
        return all(self.post(each["path"], each["body"].encode())[0] == 200 for each in lines)

    def post(self, path: str, body: bytes) -> tuple[int, bytes]:
        """Returns the status and the body of its answer; 0 if there is none."""
        trusted = ssl.create_default_context(cafile=self.folder / "ca.crt")
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, context=trusted, timeout=60)
        try:
            connection.request("POST", path, body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            return answer.status, answer.read()
        except OSError:
            return 0, b""
        finally:
            connection.close()

    def load(self, seconds: float, rate: float = 0.0) -> Run:
        """Sends reviews, so many a second or as many as are answered; the CPU and the memory are the server's."""
        flags = {
            "address": f"127.0.0.1:{self.port}",
            "authority": self.folder / "ca.crt",
            "reviews": self.reviews,
            "connections": _CONNECTIONS,
            "rate": rate,
            "seconds": seconds,
        }
        before = self.cpu()
        with Worker([str(REVIEW_LOAD.path), *(f"-{name}={value}" for name, value in flags.items())], {}) as load:
            found = load.finish()
        own = self.cpu() - before
        _, peak = self.worker.memory()
        more = {**found.more, "each": own / found.count * 1e6, "load_cpu": found.cpu}
        return replace(found, cpu=own, peak_mb=peak, more=more)

    def cpu(self) -> float:
        """The seconds that it has computed so far."""
        stat = Path(f"/proc/{self.worker.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(stat[11]) + int(stat[12])) / _TICKS


def _without_image(widget: dict[str, Any]) -> dict[str, Any]:
    return widget | {"spec": {name: value for name, value in widget["spec"].items() if name != "image"}}


def _review(operation: str, widget: dict[str, Any]) -> dict[str, Any]:
    """Returns a review as kube-apiserver sends it."""
    kind = {"group": GROUP, "version": VERSION, "kind": "Widget"}
    resource = {"group": GROUP, "version": VERSION, "resource": PLURAL}
    options = {
        "kind": f"{operation.title()}Options",
        "apiVersion": "meta.k8s.io/v1",
        "fieldManager": "kubectl-client-side-apply",
        "fieldValidation": "Strict",
    }
    request = {
        "uid": _UID,
        "kind": kind,
        "resource": resource,
        "requestKind": kind,
        "requestResource": resource,
        "name": widget["metadata"]["name"],
        "namespace": NAMESPACE,
        "operation": operation,
        "userInfo": {"username": "kubernetes-admin", "groups": ["system:masters", "system:authenticated"]},
        "object": widget,
        "oldObject": widget if operation == "UPDATE" else None,
        "dryRun": False,
        "options": options,
    }
    return {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}
