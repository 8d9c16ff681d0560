"""What each way of writing changes of an object, found out by writing: one field at a time, through every path.

`make judge NAME=write-table` asks a real API server; its answers are in `data/write_table.json`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

import rig
from conformance.write_samples import SAMPLES, Json, Marks, Sample
from judge import KUBE_APISERVER, Recording, Verdicts
from navarch.client import Config, load

DATA = Path(__file__).parent / "data"
FILE = "write_table.json"
CHANGED, KEPT = "changed", "kept"
SECONDS = 60.0
_CONFLICT = 409
_TRIES = 8
"""Controllers of a real cluster write to the same objects."""
_METHODS = ("update", "patch", "apply")
_MEDIA_TYPES = {"patch": "application/merge-patch+json", "apply": "application/apply-patch+yaml"}
_NAMESPACE = "test-writes"
_MOMENTS = ("2001-01-01T00:00:00Z", "2002-01-01T00:00:00Z")

FieldVerdicts = dict[str, dict[str, str]]
"""By path and way of writing, then by field: whether it changed, or with which code that was refused."""


class Answer(NamedTuple):
    """What the server says."""

    code: int
    body: Json


class Server:
    """An API server, as its administrator sees it."""

    def __init__(self, config: Config) -> None:
        address = config.server.removeprefix("https://")
        self._connection = HTTPSConnection(address, context=config.ssl_context(), timeout=SECONDS)
        self._token = config.token

    def ask(self, method: str, path: str, body: Json | None = None, media_type: str = "application/json") -> Answer:
        """One request."""
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": media_type}
        self._connection.request(method, path, None if body is None else msgspec.json.encode(body), headers)
        with self._connection.getresponse() as answer:
            content = answer.read()
        return Answer(answer.status, json.loads(content))

    def close(self) -> None:
        self._connection.close()


def verdicts(server: Server, sample: Sample, namespace: str, owner: str) -> FieldVerdicts:
    """What every write of every field does to an object of the kind. `owner` is the uid of the namespace, which exists."""
    return _Written(server, sample, namespace, owner).verdicts()


def metadata_marks(namespace: str, owner: str) -> Marks:
    """Fields of the metadata, with several values each: applied finalizers stay beside others."""
    reference = {"apiVersion": "v1", "kind": "Namespace", "name": namespace, "uid": owner}
    return {
        "metadata.labels.written": ("one", "two"),
        "metadata.annotations.written": ("one", "two"),
        "metadata.finalizers": [[f"x.example.com/{number}"] for number in range(20)],
        "metadata.ownerReferences": ([reference], [{**reference, "controller": True}]),
        "metadata.generation": (90, 91),
        "metadata.creationTimestamp": _MOMENTS,
        "metadata.deletionTimestamp": _MOMENTS,
        "metadata.deletionGracePeriodSeconds": (90, 91),
        "metadata.uid": ("one", "two"),
        "metadata.selfLink": ("one", "two"),
    }


class _Written:
    """One object that is written to."""

    def __init__(self, server: Server, sample: Sample, namespace: str, owner: str) -> None:
        self._server = server
        self._sample = sample
        self._collection = sample.collection(namespace)
        self._object = sample.object(namespace)
        self._other = sample.object(namespace, f"{namespace}-new")
        self._path = f"{self._collection}/{self._object['metadata']['name']}"
        self._metadata = metadata_marks(namespace, owner)

    def verdicts(self) -> FieldVerdicts:
        made = self._server.ask("POST", self._collection, self._object)
        assert made.code == 201, f"expected a new {self._sample.title}, got {made.code}: {made.body.get('message')}"
        try:
            return {"create": self._created(), **dict(self._updated())}
        finally:
            self._remove()

    def _created(self) -> dict[str, str]:
        found = {}
        for mark, values in {**self._metadata, **self._sample.status}.items():
            value = with_mark(self._other, mark, values[0])
            found[mark] = _verdict(self._server.ask("POST", f"{self._collection}?dryRun=All", value), mark, values[0])
        return found

    def _updated(self) -> Iterator[tuple[str, dict[str, str]]]:
        sample = self._sample
        everything = {**self._metadata, **sample.marks, **sample.status}
        paths: dict[str, Marks] = {"": everything}
        if sample.status:
            paths["status"] = everything
        paths |= {part: {**everything, **marks} for part, marks in sample.parts.items()}
        for part, marks in paths.items():
            for method in _METHODS:
                if part == "finalize" and method != "update":
                    continue
                yield (
                    f"{method} {part}".strip(),
                    {mark: self._written(part, method, mark, marks[mark]) for mark in marks},
                )

    def _written(self, part: str, method: str, mark: str, values: Any) -> str:
        for _ in range(_TRIES):
            live = self._live()
            wanted = next((value for value in values if not matches(value, at(live, mark))), values[0])
            answer = self._write(part, method, mark, wanted, live)
            if answer.code != _CONFLICT or mark == "metadata.uid":
                break
        if answer.body.get("kind") != self._sample.kind and answer.code < 300:
            answer = Answer(answer.code, self._live())
        return _verdict(answer, mark, wanted)

    def _write(self, part: str, method: str, mark: str, wanted: Any, live: Json) -> Answer:
        path = f"{self._path}/{part}" if part else self._path
        if method == "update":
            seen = live if part in {"", "finalize"} else self._server.ask("GET", path).body
            return self._server.ask("PUT", path, with_mark(seen, mark, wanted))
        if method == "patch":
            return self._server.ask("PATCH", path, with_mark({}, mark, wanted), _MEDIA_TYPES[method])
        kind = {"apiVersion": "autoscaling/v1", "kind": "Scale"} if part == "scale" else {}
        named = {"apiVersion": self._sample.api_version, "kind": self._sample.kind, **kind}
        body = with_mark({**named, "metadata": {"name": self._object["metadata"]["name"]}}, mark, wanted)
        return self._server.ask("PATCH", f"{path}?fieldManager={mark}&force=true", body, _MEDIA_TYPES[method])

    def _live(self) -> Json:
        return self._server.ask("GET", self._path).body

    def _remove(self) -> None:
        if self._sample.kind == "Namespace":
            self._server.ask(
                "PUT", f"{self._path}/finalize", with_mark(self._live(), "spec.finalizers", ["kubernetes"])
            )
        self._server.ask("PATCH", self._path, {"metadata": {"finalizers": None}}, _MEDIA_TYPES["patch"])
        self._server.ask("DELETE", f"{self._path}?gracePeriodSeconds=0")


def _verdict(answer: Answer, mark: str, wanted: Any) -> str:
    if answer.code >= 300:
        return str(answer.code)
    return CHANGED if matches(wanted, at(answer.body, mark)) else KEPT


def with_mark(value: Json, path: str, wanted: Any) -> Json:
    """The value with something else in one place."""
    name, _, rest = path.partition(".")
    return {**value, name: with_mark(value.get(name) or {}, rest, wanted) if rest else wanted}


def at(value: Any, path: str) -> Any:
    """What is in that place; None if nothing is."""
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def matches(wanted: Any, found: Any) -> bool:
    """Whether what is there is what was wanted; the server and its controllers may have added to it."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        return all(matches(value, found.get(name)) for name, value in wanted.items())
    if isinstance(wanted, list) and isinstance(found, list):
        return all(any(matches(each, other) for other in found) for each in wanted) and bool(wanted or not found)
    return bool(wanted == found or not (wanted or found))


def prepared(server: Server, namespace: str) -> str:
    """The uid of a namespace in which pods can be made."""
    server.ask("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    server.ask("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": "default"}})
    uid: str = server.ask("GET", f"/api/v1/namespaces/{namespace}").body["metadata"]["uid"]
    return uid


def recorded() -> dict[str, FieldVerdicts]:
    """What the real server does, by kind."""
    found: dict[str, FieldVerdicts] = json.loads((DATA / FILE).read_text())
    return found


def ask(cluster: rig.Cluster) -> Verdicts:
    """Writes to an object of every kind."""
    server = Server(load(cluster.kubeconfig))
    owner = prepared(server, _NAMESPACE)
    found = {each.title: verdicts(server, each, _NAMESPACE, owner) for each in SAMPLES}
    server.close()
    return {FILE: found}


RECORDING = Recording("write-table", KUBE_APISERVER, DATA, (FILE,), ask)
