"""Asks a real server what it makes of the objects under `data/`, and writes down its answers."""

from __future__ import annotations

import copy
import json
import re
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

import rig
from judge import KUBE_APISERVER, Recording, Verdicts, without_chance
from navarch.api.merge_patch import apply_merge_patch
from navarch.k8s.published import published

DATA = Path(__file__).parent / "data"
NAMESPACE = "kinds"
Json = dict[str, Any]
_TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
_MERGE = {"Content-Type": "application/merge-patch+json"}
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's where it is there: each process that runs tests reads these files."""
_CONFLICT = 409
_AGE = re.compile(r"\b\d+[smhdy](\d+[smhd])?\b")
_ADDRESS = re.compile(r"\b10\.0\.0\.\d+\b")
_ATTEMPTS = 10
"""Controllers write to the same objects."""


class Answer(NamedTuple):
    """What the server says."""

    code: int
    body: Json
    warnings: list[str]


class Server:
    """A real server."""

    def __init__(self, cluster: rig.Cluster) -> None:
        self._url = cluster.url
        self._context = ssl.create_default_context(cafile=cluster.ca_file)
        self._headers = {"Authorization": f"Bearer {cluster.token}", "Content-Type": "application/json"}

    def ask(self, method: str, path: str, body: Json | None = None, headers: dict[str, str] | None = None) -> Answer:
        """One request."""
        data = None if body is None else json.dumps(body).encode()
        headers = {**self._headers, **(headers or {})}
        request = urllib.request.Request(self._url + path, data=data, method=method, headers=headers)
        try:
            reply = urllib.request.urlopen(request, context=self._context)
        except urllib.error.HTTPError as error:
            reply = error
        with reply:
            warnings = [text[7:-1].replace('\\"', '"') for text in reply.headers.get_all("Warning") or ()]
            return Answer(int(reply.status or 0), json.loads(reply.read()), warnings)


def places() -> dict[tuple[str, str], tuple[str, bool]]:
    """The path of each kind, and whether it is in namespaces."""
    return {
        (f"{group}/{version['version']}".removeprefix("/"), resource["responseKind"]["kind"]): (
            f"/{root}/{group}/{version['version']}/".replace("//", "/") + "{}" + resource["resource"],
            resource["scope"] == "Namespaced",
        )
        for root in ("api", "apis")
        for item in published().discovery(root)["items"]
        for group in (item["metadata"].get("name", ""),)
        for version in item["versions"]
        for resource in version["resources"]
    }


PLACES = places()


def path_of(value: Json) -> str:
    """Where objects of its kind are."""
    path, namespaced = PLACES[value["apiVersion"], value["kind"]]
    namespace = value["metadata"].get("namespace") or NAMESPACE
    return path.format(f"namespaces/{namespace}/" if namespaced else "")


def manifests() -> list[Json]:
    """The objects of `manifests.yaml`."""
    return list(yaml.load_all((DATA / "manifests.yaml").read_text(), _LOADER))


def cases() -> list[Json]:
    """The entries of `cases.yaml`."""
    found: list[Json] = yaml.load((DATA / "cases.yaml").read_text(), _LOADER)
    return found


def statuses() -> list[Json]:
    """The entries of `statuses.yaml`."""
    found: list[Json] = yaml.load((DATA / "statuses.yaml").read_text(), _LOADER)
    return found


def updated(value: Json, patch: Json) -> Json:
    """What an update puts in the place of an object."""
    found: Json = apply_merge_patch(patch, copy.deepcopy(value))
    return found


def answers(server: Server) -> Iterator[Json]:
    """What creating each manifest answers: the object, and its row."""
    for value in manifests():
        reply = server.ask("POST", f"{path_of(value)}?includeObject=Object", value, _TABLE)
        assert "rows" in reply.body, f"expected {value['kind']} {value['metadata']['name']} to be made, got {reply}"
        row = reply.body["rows"][0]
        _remove(server, row["object"])
        yield {"object": _comparable(row["object"]), "cells": _new(row["cells"]), "warnings": reply.warnings}


def refusals(server: Server) -> Iterator[Json]:
    """What the server says to each case."""
    for case in cases():
        value = {name: part for name, part in case.items() if name != "update"}
        if "update" in case:
            reply = _update(server, value, case["update"])
        else:
            reply = server.ask("POST", path_of(value), value)
            if reply.body.get("kind") != "Status":
                _remove(server, reply.body)
        yield _told(reply)


def rows(server: Server) -> Iterator[Json]:
    """The row of each object whose status was written."""
    for entry in statuses():
        made = server.ask("POST", path_of(entry["object"]), entry["object"]).body
        path = f"{path_of(made)}/{made['metadata']['name']}/status?includeObject=Object"
        reply = server.ask("PATCH", path, {"status": entry["status"]}, {**_TABLE, **_MERGE})
        assert "rows" in reply.body, f"expected the status of {made['metadata']['name']} to be taken, got {reply.body}"
        row = reply.body["rows"][0]
        _remove(server, made)
        yield {"object": _comparable(row["object"]), "cells": _new(row["cells"])}


def _update(server: Server, value: Json, patch: Json) -> Answer:
    made = server.ask("POST", path_of(value), value)
    assert "status" not in made.body or made.body.get("kind") != "Status", f"expected {value} to be made, got {made}"
    place = f"{path_of(made.body)}/{value['metadata']['name']}"
    try:
        for _ in range(_ATTEMPTS):
            reply = server.ask("PUT", f"{place}?dryRun=All", updated(server.ask("GET", place).body, patch))
            if "the object has been modified" not in reply.body.get("message", ""):
                break
        return reply
    finally:
        _remove(server, made.body)


def _remove(server: Server, value: Json) -> None:
    name = value["metadata"]["name"]
    place = f"{path_of(value)}/{name}"
    server.ask("DELETE", f"{place}?gracePeriodSeconds=0&propagationPolicy=Background")
    if value["kind"] == "Namespace":
        return
    patch = {"metadata": {"finalizers": None}}
    server.ask("PATCH", place, patch, _MERGE)


def _comparable(value: Json) -> Json:
    for name in ("resourceVersion", "managedFields"):
        value["metadata"].pop(name, None)
    return value


def _new(cells: list[Any]) -> list[Any]:
    """An object may have seen the turn of a second before its row was made."""
    return ["0s" if cell == "1s" else cell for cell in cells]


def _told(reply: Answer) -> Json:
    told: Json = {"code": reply.code}
    if reply.warnings:
        told["warnings"] = reply.warnings
    if reply.body.get("kind") == "Status":
        told |= {"message": reply.body["message"], "reason": reply.body["reason"]}
        causes = reply.body.get("details", {}).get("causes", ())
        told["causes"] = [[cause.get("field", ""), cause["reason"], cause["message"]] for cause in causes]
    elif reply.body["metadata"].get("generation"):
        told["generation"] = reply.body["metadata"]["generation"]
    return told


def ask(cluster: rig.Cluster) -> Verdicts:
    """Puts every question."""
    server = Server(cluster)
    made = server.ask("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    assert made.code in {201, _CONFLICT}, f"expected a namespace, got {made}"
    while server.ask("GET", f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/default").code != 200:
        pass
    return {
        "answers.json": list(answers(server)),
        "refusals.json": list(refusals(server)),
        "rows.json": list(rows(server)),
    }


def comparable(value: Json) -> Json:
    """Returns an object without what admission adds, and without what is random."""
    found = copy.deepcopy(value)
    metadata, spec = found["metadata"], found.get("spec", {})
    metadata.pop("uid", None)
    match found["kind"]:
        case "Pod":
            _strip_pod(spec)
        case "PersistentVolumeClaim" | "PersistentVolume":
            metadata.pop("finalizers", None)
        case "Node":
            spec["taints"] = [each for each in spec.get("taints", ()) if each["key"] != "node.kubernetes.io/not-ready"]
        case "Service" if spec.get("clusterIP") not in {None, "None"}:
            spec |= {"clusterIP": "10.0.0.x", "clusterIPs": ["10.0.0.x"]}
    return found


def _strip_pod(spec: Json) -> None:
    for name in ("serviceAccount", "serviceAccountName", "priority", "preemptionPolicy", "tolerations"):
        spec.pop(name, None)
    spec["volumes"] = [each for each in spec.get("volumes", ()) if not each["name"].startswith("kube-api-access")]
    for container in [*spec["containers"], *spec.get("initContainers", ())]:
        mounts = container.get("volumeMounts", ())
        container["volumeMounts"] = [each for each in mounts if not each["name"].startswith("kube-api-access")]


def told(message: str) -> str:
    """Returns a message without random names, and without Go's own view of what differs."""
    message = message.partition("\n")[0]
    message = re.sub(r'"Bad_[a-z0-9]{5}"', '"Bad_"', message)
    message = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "u", message)
    return re.sub(r"Invalid value: \{.*\"[Ss]pec\":.*\}: ", "Invalid value: {}: ", message)


_WITH_RANDOM_LABELS = frozenset({"Job", "PersistentVolume"})


def steady(name: str, verdicts: list[Json]) -> list[Json]:
    """Returns verdicts without times, addresses and what is random; causes are sorted, since Go's order of them is not."""
    make = {"answers.json": _steady_answer, "refusals.json": _steady_refusal, "rows.json": _steady_row}[name]
    return [make(each) for each in verdicts]


def _steady_answer(entry: Json) -> Json:
    value = comparable(entry["object"])
    shown = value if value["kind"] not in _WITH_RANDOM_LABELS else {"kind": value["kind"]}
    found: Json = without_chance({"object": shown, "warnings": entry["warnings"]})
    return {**found, "cells": _steady_cells(entry["cells"])}


def _steady_row(entry: Json) -> Json:
    """Controllers write to the status, too: what its columns show is compared."""
    value = entry["object"]
    return {"kind": value["kind"], "name": value["metadata"]["name"], "cells": _steady_cells(entry["cells"])}


def _steady_cells(cells: list[Any]) -> list[Any]:
    return [
        _AGE.sub("<age>", _ADDRESS.sub("10.0.0.x", cell)) if isinstance(cell, str) else cell
        for cell in without_chance(cells)
    ]


def _steady_refusal(entry: Json) -> Json:
    causes = sorted([field, reason, told(message)] for field, reason, message in entry.get("causes", ()))
    kept = {name: entry.get(name) for name in ("code", "reason", "warnings", "generation")}
    return {**kept, "causes": causes}


RECORDING = Recording("builtin", KUBE_APISERVER, DATA, ("answers.json", "refusals.json", "rows.json"), ask, steady)
