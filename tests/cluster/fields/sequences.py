"""Random sequences of writes by several managers, sent to a real API server."""

from __future__ import annotations

import json
import random
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime
from http.client import HTTPSConnection
from typing import Any
from urllib.parse import urlencode, urlsplit

import rig
from cluster.fields import widgets
from cluster.fields.replay import BUILTINS, MEDIA_TYPES, Json, Step
from rig.waiting import wait_for

NAMESPACE = "default"
_OVERTAKEN = ("the object has been modified", "due to an error in our request")
MANAGERS = ("ann", "bob", "cid")


class Server:
    """A real API server, asked as administrator."""

    def __init__(self, cluster: rig.Cluster) -> None:
        address = urlsplit(cluster.url)
        context = ssl.create_default_context(cafile=str(cluster.ca_file))
        self._connection = HTTPSConnection(str(address.hostname), address.port, context=context, timeout=60)
        self._token = cluster.token

    def close(self) -> None:
        """Lets go of the connection."""
        self._connection.close()

    def ask(self, method: str, path: str, body: Any = None, media_type: str = "application/json") -> tuple[int, Json]:
        """The code and the body of the answer."""
        sent = body if body is None or isinstance(body, bytes) else json.dumps(body, ensure_ascii=False).encode()
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": media_type, "User-Agent": "tester"}
        self._connection.request(method, path, sent, headers)
        answer = self._connection.getresponse()
        text = answer.read()
        return answer.status, json.loads(text) if text.startswith(b"{") else {}

    def install_widgets(self) -> None:
        """Creates the CRD and returns when it is served."""
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        code, answer = self.ask("POST", path, widgets.definition())
        assert code in {201, 409}, answer
        path = f"/apis/{widgets.GROUP}/v1/namespaces/{NAMESPACE}/{widgets.PLURAL}"
        wait_for(f"{path} to be served", lambda: self.ask("GET", path)[0] == 200, seconds=60.0)


def object_path(plural: str, version: str, name: str, subresource: str = "") -> str:
    """Where an object is served."""
    group, version, _ = BUILTINS.get(plural, (widgets.GROUP, version, ""))
    root = f"/apis/{group}/{version}" if group else f"/api/{version}"
    path = f"{root}/namespaces/{NAMESPACE}/{plural}/{name}"
    return f"{path}/{subresource}" if subresource else path


def send(
    server: Server, path: str, operation: str, manager: str, body: Any, *, force: bool = False
) -> tuple[int, Json]:
    """The code and the answer of a write."""
    query = urlencode({"fieldManager": manager} | ({"force": "true"} if force else {}))
    if operation == "create":
        return server.ask("POST", f"{path.rpartition('/')[0]}?{query}", body)
    if operation == "update":
        return server.ask("PUT", f"{path}?{query}", body)
    return server.ask("PATCH", f"{path}?{query}", body, MEDIA_TYPES[operation])


class Sequence:
    """The life of one object."""

    def __init__(self, server: Server, plural: str, name: str, chance: random.Random) -> None:
        self._server = server
        self._plural = plural
        self._name = name
        self._chance = chance
        self._values = widgets.Values(chance)

    def steps(self, count: int) -> Iterator[Step]:
        """Writes, each with what was there before it; the object is gone afterwards."""
        for _ in range(count):
            live = self._read()
            step = self._write(live, self._operation(live))
            if step is not None:
                yield step
        self._server.ask("DELETE", object_path(self._plural, "v1", self._name) + "?gracePeriodSeconds=0")

    def _operation(self, live: Json | None) -> str:
        if live is None:
            return self._chance.choice(["create", "create", "apply"])
        patches = ["merge", "json"] + ([] if self._plural == "widgets" else ["strategic"])
        return self._chance.choice(["apply", "apply", "apply", "update", "update", *patches])

    def _read(self) -> Json | None:
        code, found = self._server.ask("GET", object_path(self._plural, "v1", self._name))
        return found if code == 200 else None

    def _write(self, live: Json | None, operation: str) -> Step | None:
        version, subresource = self._place(live)
        live = self._in_version(live, version)
        force = operation == "apply" and self._chance.random() < 0.4
        manager = self._chance.choice(MANAGERS)
        body = self._body(live, operation, version, subresource)
        start = datetime.now(UTC)  # noqa: TID251 - the real server has no other clock
        path = object_path(self._plural, version, self._name, subresource)
        code, answer = send(self._server, path, operation, manager, body, force=force)
        if code >= 400 and any(text in answer["message"] for text in _OVERTAKEN):
            return None
        return Step(
            plural=self._plural,
            version=version,
            operation=operation,
            manager=manager,
            force=force,
            subresource=subresource,
            body=body,
            live=live,
            code=code,
            answer=answer,
            now=time_of(answer, start),
        )

    def _place(self, live: Json | None) -> tuple[str, str]:
        if self._plural != "widgets":
            return "v1", ""
        version = "v1beta1" if self._chance.random() < 0.15 else "v1"
        return version, "status" if live is not None and self._chance.random() < 0.2 else ""

    @staticmethod
    def _in_version(live: Json | None, version: str) -> Json | None:
        if live is None or "/" not in live["apiVersion"] or not live["apiVersion"].startswith(widgets.GROUP):
            return live
        return {**live, "apiVersion": f"{widgets.GROUP}/{version}"}

    def _body(self, live: Json | None, operation: str, version: str, subresource: str) -> Any:
        wanted = self._wanted(version)
        if subresource:
            wanted["status"] = self._values.of(widgets.STATUS)
        if live is None:
            return wanted
        lock = {"resourceVersion": live["metadata"]["resourceVersion"]}
        if operation == "apply":
            return {**wanted, "metadata": {**wanted["metadata"], **lock}}
        if operation == "update":
            return self._mixed(live, wanted)
        part = self._part(wanted)
        if operation == "json":
            parts = self._mixed_parts(live, part)
            changes = [{"op": "add", "path": f"/{name}", "value": value} for name, value in parts]
            return [{"op": "test", "path": "/metadata/resourceVersion", "value": lock["resourceVersion"]}, *changes]
        return {**part, "metadata": {**part.get("metadata", {}), **lock}}

    def _wanted(self, version: str) -> Json:
        meta: Json = {"name": self._name, "namespace": NAMESPACE}
        for name in ("labels", "annotations"):
            if self._chance.random() < 0.4:
                meta[name] = {self._chance.choice("abc"): self._chance.choice("12") for _ in range(2)}
        if self._plural == "widgets":
            spec = self._values.of(widgets.SPEC)
            return {"apiVersion": f"{widgets.GROUP}/{version}", "kind": "Widget", "metadata": meta, "spec": spec}
        return BUILTIN_BODIES[self._plural](self._chance, meta)

    def _part(self, wanted: Json) -> Json:
        names = [name for name in wanted if name not in {"apiVersion", "kind"}]
        count = min(len(names), 1 + (self._chance.random() < 0.4))
        return {name: wanted[name] for name in self._chance.sample(names, count)}

    def _mixed(self, live: Json, wanted: Json) -> Json:
        """The live object with some members of the wanted one, and some gone."""
        mixed: Json = json.loads(json.dumps(live))
        for name, value in self._mixed_parts(live, wanted):
            mixed[name] = value
        roll = self._chance.random()
        if roll < 0.2:
            mixed["metadata"].pop("managedFields", None)
        elif roll < 0.25:
            mixed["metadata"]["managedFields"] = self._chance.choice([[], [{}], [{"operation": "Frob"}]])
        return mixed

    def _mixed_parts(self, live: Json, wanted: Json) -> Iterator[tuple[str, Json]]:
        for name, value in wanted.items():
            if name in {"apiVersion", "kind"}:
                continue
            before = live.get(name, {})
            if name == "metadata":
                labels = {key: value[key] for key in ("labels", "annotations") if key in value}
                yield name, {**before, **labels}
                continue
            merged = {**before, **value}
            if merged and self._plural in {"widgets", "configmaps"} and self._chance.random() < 0.3:
                merged.pop(self._chance.choice(sorted(merged)))
            yield name, merged


def time_of(answer: Json, start: datetime) -> str:
    """When the server wrote what it answered."""
    earliest = start.strftime("%Y-%m-%dT%H:%M:%SZ")
    entries = (answer.get("metadata") or {}).get("managedFields") or []
    times: list[str] = [entry.get("time", "") for entry in entries]
    return max([earliest, *times])


def _config_map(chance: random.Random, meta: Json) -> Json:
    data = {chance.choice("abc"): chance.choice("12") for _ in range(chance.randint(0, 3))}
    body: Json = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}
    return {**body, "data": data} if chance.random() < 0.9 else body


def _service(chance: random.Random, meta: Json) -> Json:
    ports: list[Json] = []
    for port in chance.sample([80, 443, 8080], chance.randint(1, 3)):
        ports.append({"name": f"p{port}", "port": port})
        if chance.random() < 0.5:
            ports[-1]["protocol"] = "TCP"
        if chance.random() < 0.5:
            ports[-1]["targetPort"] = chance.choice([80, "web"])
    spec: Json = {"ports": ports}
    if chance.random() < 0.6:
        spec["selector"] = {chance.choice("ab"): "1"}
    if chance.random() < 0.3:
        spec["internalTrafficPolicy"] = chance.choice(["Cluster", "Local"])
    return {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": spec}


def _container(chance: random.Random, name: str) -> Json:
    container: Json = {"name": name, "image": chance.choice(["one", "two"])}
    if chance.random() < 0.5:
        container["env"] = [{"name": each, "value": chance.choice("12")} for each in chance.sample("ABC", 2)]
    if chance.random() < 0.5:
        container["ports"] = [{"containerPort": each} for each in chance.sample([80, 443], chance.randint(1, 2))]
    if chance.random() < 0.3:
        container["resources"] = {"limits": {"cpu": chance.choice(["1", "500m"])}}
    if chance.random() < 0.3:
        container["args"] = chance.sample(["x", "y"], 1)
    return container


def _pod(chance: random.Random, meta: Json) -> Json:
    spec = {"automountServiceAccountToken": False, "containers": [{"name": "a", "image": chance.choice(["1", "2"])}]}
    if chance.random() < 0.3:
        spec["activeDeadlineSeconds"] = chance.choice([50, 40])
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def _deployment(chance: random.Random, meta: Json) -> Json:
    names = chance.sample("abc", chance.randint(1, 3))
    template = {
        "metadata": {"labels": {"app": "x"}},
        "spec": {"containers": [_container(chance, name) for name in names]},
    }
    spec: Json = {"selector": {"matchLabels": {"app": "x"}}, "template": template}
    if chance.random() < 0.5:
        spec["replicas"] = 0
    if chance.random() < 0.3:
        spec["minReadySeconds"] = chance.choice([1, 2])
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": {**spec, "paused": True}}


BUILTIN_BODIES = {
    "configmaps": _config_map,
    "services": _service,
    "pods": _pod,
    "deployments": _deployment,
}
