"""Who owns which field after writes to a real server, and what its patches make of objects: `make judge NAME=fields`."""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import rig
from cluster.fields import widgets
from cluster.fields.acting import performed
from cluster.fields.conversation import OBJECTS, patches
from cluster.fields.replay import Json, Step
from cluster.fields.scales import CONTROLLER, performed_scales
from cluster.fields.scripts import scripts
from cluster.fields.sequences import Sequence, Server, object_path
from judge import KUBE_APISERVER, Recording, Verdicts, without_chance
from navarch.api import apply_json_patch, create_json_patch

DATA = Path(__file__).parent / "data"
RECORDED = {"widgets": 8, "configmaps": 6, "services": 2, "deployments": 1, "pods": 2}
STEPS = 6
_ADDRESS = re.compile(r"\b10\.0\.0\.\d+\b")
_CONTROLLED = frozenset(
    {
        *("deployments", "statefulsets", "daemonsets", "replicasets", "replicationcontrollers", "jobs", "cronjobs"),
        *("poddisruptionbudgets", "horizontalpodautoscalers", "resourcequotas", "persistentvolumeclaims"),
    }
)
"""Controllers of the real cluster write to these whenever they like: `make e2e` compares each step with our own outcome."""


def packed(steps: Iterable[Step]) -> list[Json]:
    """Steps about one object; an answer is told by what differs from what was there, and that by the answer before."""
    result: list[Json] = []
    before: Json | None = None
    for step in steps:
        told = _normal(asdict(step))
        del told["is_fresh"]
        live, answer = told["live"], told["answer"]
        if live == _in_version(before, step):
            del told["live"]
        if live is not None and step.code < 300:
            del told["answer"]
            told["changes"] = create_json_patch(live, answer)
        before = answer if step.code < 300 else live
        result.append({name: value for name, value in told.items() if value not in ("", False)})
    return result


def unpacked(told: Iterable[Json]) -> Iterator[Step]:
    """The steps again."""
    before: Json | None = None
    for step in told:
        filled = {"subresource": "", "force": False, **step}
        live = filled["live"] = filled.get("live", _in_version(before, filled))
        if "changes" in filled:
            filled["answer"] = apply_json_patch(filled.pop("changes"), live)
        before = filled["answer"] if filled["code"] < 300 else live
        yield Step(**filled, is_fresh=False)


def _in_version(value: Json | None, step: Any) -> Json | None:
    """An object as it is read in the version of a step."""
    plural, version = (step["plural"], step["version"]) if isinstance(step, dict) else (step.plural, step.version)
    if value is None or plural != widgets.PLURAL:
        return value
    return {**value, "apiVersion": f"{widgets.GROUP}/{version}"}


def _normal(told: Json) -> Json:
    """Without ids that are never the same."""
    for value in (told["live"], told["answer"]):
        meta = (value or {}).get("metadata") or {}
        if "uid" in meta:
            meta["uid"] = "uid"
    return told


def _sequences(server: Server) -> Iterator[list[Json]]:
    for plural, count in RECORDED.items():
        for seed in range(count):
            yield packed(Sequence(server, plural, f"{plural}-{seed}", random.Random(seed)).steps(STEPS))


def _patches(server: Server) -> Json:
    """The objects, and what each patch makes of one."""
    objects: Json = {}
    for plural, body in OBJECTS.items():
        path = object_path(plural, "v1", "patched")
        server.ask("POST", path.rpartition("/")[0], body)
        objects[plural] = server.ask("GET", path)[1]
    answers = []
    for patch in patches():
        query = f"?dryRun=All&fieldManager=ann&fieldValidation={patch.field_validation}"
        path = object_path(patch.plural, "v1", "patched") + query
        code, answer = server.ask("PATCH", path, patch.body.encode(), patch.media_type)
        answers.append((code, _changes(objects[patch.plural], answer) if code < 300 else answer))
    return {"objects": objects, "answers": answers}


def _changes(before: Json, after: Json) -> list[Json]:
    """What differs, but for who owns what."""
    after["metadata"]["managedFields"] = before["metadata"]["managedFields"]
    return create_json_patch(before, after)


def ask(cluster: rig.Cluster) -> Verdicts:
    """Puts every question."""
    server = Server(cluster)
    server.install_widgets()
    found = {
        "scripts.json": [packed(performed(server, script)) for script in scripts()],
        "sequences.json": list(_sequences(server)),
        "patches.json": _patches(server),
        "scales.json": performed_scales(server),
    }
    server.close()
    return found


def steady(name: str, verdicts: Any) -> Any:
    """Returns verdicts without uids, times and addresses, and without what the controllers of the real cluster write.

    A sequence is shown step by step, not by what changes from one to the next.
    """
    if name in {"scripts.json", "sequences.json"}:
        return [[_steady_step(step) for step in unpacked(told) if step.plural not in _CONTROLLED] for told in verdicts]
    if name == "patches.json":
        verdicts = {"objects": _own_parts(verdicts["objects"]), "answers": _own_changes(verdicts["answers"])}
    return without_chance(verdicts)


def _steady_step(step: Step) -> Json:
    """Go's order of causes is random, and so is the address of a service; that of managers depends on the second."""
    found: Json = json.loads(_ADDRESS.sub("<address>", json.dumps(without_chance(asdict(step)))))
    for value in (found["live"], found["body"], found["answer"]):
        metadata = (value.get("metadata") if isinstance(value, dict) else None) or {}
        if isinstance(metadata, dict) and metadata.get("managedFields"):
            metadata["managedFields"].sort(key=lambda entry: json.dumps(entry, sort_keys=True))
    details = found["answer"].get("details") or {}
    if "causes" in details:
        details["causes"].sort(key=lambda cause: sorted(cause.items()))
    return found


def _own_parts(objects: Json) -> Json:
    found: Json = copy.deepcopy(objects)
    for value in found.values():
        value.pop("status", None)
        entries = value["metadata"]["managedFields"]
        value["metadata"]["managedFields"] = [entry for entry in entries if entry["manager"] != CONTROLLER]
    return found


def _own_changes(answers: list[Any]) -> list[Any]:
    theirs = ("/status", "/metadata/resourceVersion")
    return [
        [code, [each for each in changes if not each["path"].startswith(theirs)] if code < 300 else changes]
        for code, changes in answers
    ]


RECORDING = Recording(
    "fields", KUBE_APISERVER, DATA, ("patches.json", "scales.json", "scripts.json", "sequences.json"), ask, steady
)
