"""What a model API server keeps: the objects, one counter of versions, and everything that has happened so far."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from navarch._base.clock import Clock
from navarch.api import Kind, format_time
from navarch.api.json_patch import copy_json, same_json
from navarch.api.kind import Key

Json = dict[str, Any]

_SET_BY_THE_SERVER = ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "generation")
_UNDELETABLE = "deletionGracePeriodSeconds"


class Refusal(Exception):  # noqa: N818 - the server's word, not a fault of the test
    """The server says no, with a Status."""

    def __init__(self, code: int, reason: str, message: str, *, token: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.token = token
        """For a list that cannot go on as it began: how it can go on instead."""

    def status(self) -> Json:
        """As it is sent."""
        body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": self.code, "reason": self.reason}
        return {**body, "message": str(self), "metadata": {"continue": self.token} if self.token else {}}


@dataclass(frozen=True, slots=True)
class Change:
    """One write. `before` is None for a new object, `after` for one that is gone."""

    version: int
    kind: Kind
    key: Key
    before: Json | None
    after: Json | None


@dataclass(frozen=True, slots=True)
class Bookmark:
    """Nothing happened up to this version that is not in the log above."""

    version: int


class ModelStore:
    """Objects of any kind under one counter of versions. An object in it is never changed, only replaced by another.

    The log is kept whole; `compacted` is the version before which the server pretends not to know it.
    """

    def __init__(self, clock: Clock) -> None:
        self.version = 1
        self.compacted = 1
        self.log: list[Change | Bookmark] = []
        self._clock = clock
        self._objects: dict[Kind, dict[Key, Json]] = {}
        self._uids = 0

    def objects(self, kind: Kind) -> dict[Key, Json]:
        """All objects of a kind."""
        return dict(self._objects.get(kind, {}))

    def objects_at(self, kind: Kind, version: int) -> dict[Key, Json]:
        """All objects of a kind as they were then."""
        found = self.objects(kind)
        for entry in reversed(self.log):
            if entry.version <= version:
                break
            if isinstance(entry, Change) and entry.kind == kind:
                _put(found, entry.key, entry.before)
        return found

    def get(self, kind: Kind, key: Key) -> Json:
        """The object; refuses if there is none."""
        found = self._objects.get(kind, {}).get(key)
        if found is None:
            raise Refusal(404, "NotFound", f'{kind.resource} "{key.name}" not found')
        return found

    def create(self, kind: Kind, namespace: str, new: Json, *, dry_run: bool = False) -> Json:
        """A new object, with a name of its own if it has only `generateName`; its status is left out."""
        metadata = dict(new.get("metadata") or {})
        uid = self._next_uid()
        name = metadata.get("name") or f"{metadata.get('generateName', '')}{self._uids:05d}"
        key = Key(namespace if kind.namespaced else "", name)
        if key in self._objects.get(kind, {}):
            raise Refusal(409, "AlreadyExists", f'{kind.resource} "{name}" already exists')
        if metadata.get("resourceVersion"):
            raise Refusal(400, "BadRequest", "resourceVersion should not be set on objects to be created")
        metadata |= {"name": name, "uid": uid, "creationTimestamp": format_time(self._clock.now())}
        metadata |= {"namespace": namespace} if kind.namespaced else {}
        metadata |= {"generation": 1} if kind.has_status else {}
        return self._write(kind, key, None, {**_without_status(kind, new), "metadata": metadata}, dry_run=dry_run)

    def replace(self, kind: Kind, key: Key, changed: Json, *, only_status: bool = False, dry_run: bool = False) -> Json:
        """The object as `changed` has it: only its status, or everything else. Refuses what is no longer up to date.

        A write that changes nothing makes no new version. An object that is being deleted goes with its last finalizer.
        """
        before = self.get(kind, key)
        _check_precondition(kind, key, before, changed.get("metadata") or {})
        after = _with_status(before, changed) if only_status else _updated(kind, before, changed)
        if same_json(before, after):
            return before
        if before["metadata"].get("deletionTimestamp") and not after["metadata"].get("finalizers"):
            self._write(kind, key, before, None, dry_run=dry_run)
            return after
        return self._write(kind, key, before, after, dry_run=dry_run)

    def delete(self, kind: Kind, key: Key, preconditions: Json | None = None, *, dry_run: bool = False) -> Json | None:
        """Removes the object; one with finalizers is marked, and returned as it is now."""
        before = self.get(kind, key)
        _check_precondition(kind, key, before, preconditions or {})
        metadata = before["metadata"]
        if not metadata.get("finalizers"):
            self._write(kind, key, before, None, dry_run=dry_run)
            return None
        if metadata.get("deletionTimestamp"):
            return before
        marked = {**metadata, "deletionTimestamp": format_time(self._clock.now()), _UNDELETABLE: 0}
        marked |= {"generation": metadata["generation"] + 1} if "generation" in metadata else {}
        return self._write(kind, key, before, {**before, "metadata": marked}, dry_run=dry_run)

    def remove(self, kind: Kind, key: Key) -> None:
        """Takes the object away, whatever its finalizers are."""
        self._write(kind, key, self.get(kind, key), None, dry_run=False)

    def bookmark(self) -> None:
        """Notes in the log that it is complete up to here."""
        self.log.append(Bookmark(self.version))

    def _write(self, kind: Kind, key: Key, before: Json | None, after: Json | None, *, dry_run: bool) -> Json:
        """The object as it is stored; for a deletion, as it was."""
        if dry_run:
            return after or before or {}
        self.version += 1
        if after is not None:
            after = versioned(copy_json(after), self.version)
        _put(self._objects.setdefault(kind, {}), key, after)
        self.log.append(Change(self.version, kind, key, before, after))
        return after or before or {}

    def _next_uid(self) -> str:
        self._uids += 1
        return f"00000000-0000-4000-8000-{self._uids:012d}"


def versioned(found: Json, version: int) -> Json:
    """The object with that version."""
    return {**found, "metadata": {**found["metadata"], "resourceVersion": str(version)}}


def _put(objects: dict[Key, Json], key: Key, found: Json | None) -> None:
    if found is None:
        objects.pop(key, None)
    else:
        objects[key] = found


def _check_precondition(kind: Kind, key: Key, current: Json, given: Json) -> None:
    for field in ("uid", "resourceVersion"):
        expected, found = given.get(field), current["metadata"][field]
        if expected and expected != found:
            text = f"the object has been modified: {field} is {found}, got {expected}"
            raise Refusal(409, "Conflict", f'Operation cannot be fulfilled on {kind.resource} "{key.name}": {text}')


def _without_status(kind: Kind, found: Json) -> Json:
    return {field: value for field, value in found.items() if field != "status" or not kind.has_status}


def _with_status(before: Json, changed: Json) -> Json:
    kept = {field: value for field, value in before.items() if field != "status"}
    return {**kept, "status": changed["status"]} if "status" in changed else kept


def _updated(kind: Kind, before: Json, changed: Json) -> Json:
    """What a user may change, on top of what only the server sets. A change of the spec makes a new generation."""
    after = _without_status(kind, changed)
    if kind.has_status and "status" in before:
        after["status"] = before["status"]
    after["metadata"] = _updated_metadata(before["metadata"], changed.get("metadata") or {})
    if "generation" in after["metadata"] and not same_json(_desired(before), _desired(after)):
        after["metadata"]["generation"] += 1
    return after


def _updated_metadata(before: Json, changed: Json) -> Json:
    added = set(changed.get("finalizers") or ()) - set(before.get("finalizers") or ())
    if added and before.get("deletionTimestamp"):
        raise Refusal(422, "Invalid", f"no new finalizers can be added if the object is being deleted, found {added}")
    fixed = (*_SET_BY_THE_SERVER, _UNDELETABLE, "resourceVersion")
    free = {field: value for field, value in changed.items() if field not in fixed}
    return free | {field: before[field] for field in fixed if field in before}


def _desired(found: Json) -> Json:
    return {field: value for field, value in found.items() if field not in {"metadata", "status"}}
