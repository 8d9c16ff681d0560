"""Deletes objects: preconditions, finalizers, grace periods and propagation."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

import msgspec

from navarch.api import format_time, truncate_to_seconds
from navarch.cluster.server.kinds.builtin.generic.schema import schema_of
from navarch.cluster.server.objects.list_pages import asked_limit, list_page, parsed_integer
from navarch.cluster.server.objects.registry import (
    Found,
    decoded,
    encoded,
    retry_on_conflict,
    seen_all,
    stored_form,
    value_of,
)
from navarch.cluster.server.objects.response_bodies import list_reply
from navarch.cluster.server.objects.selectors import selection_of, selectors_of
from navarch.cluster.server.objects.types import ResourceType
from navarch.cluster.server.pipeline.endpoints.call import ResourceCall
from navarch.cluster.server.pipeline.endpoints.options import boolean, dry_run_faults, refusal_of, refuse_list_options
from navarch.cluster.server.wire.bodies import decode_options
from navarch.cluster.server.wire.request import Json, Reply
from navarch.cluster.server.wire.status_causes import invalid, unsupported
from navarch.cluster.server.wire.status_errors import StatusError, bad_request, conflict
from navarch.cluster.storage import Stored
from navarch.k8s.published import META

_LONGEST_GRACE = 1000 * 365 * 86_400
"""Seconds after which an end is as good as none; later ones have no text."""
_ORPHAN = "orphan"
_FOREGROUND = "foregroundDeletion"
_DELETE_OPTIONS = f"{META}.DeleteOptions"
_POLICIES = {"Orphan": _ORPHAN, "Foreground": _FOREGROUND, "Background": ""}


class DeletePreconditions(msgspec.Struct, rename="camel"):
    """Which object is meant, and which version of it; what is not given does not matter."""

    uid: str | None = None
    resource_version: str | None = None


class _DeleteOptions(msgspec.Struct, rename="camel"):
    grace_period_seconds: int | None = None
    preconditions: DeletePreconditions | None = None
    orphan_dependents: bool | None = None
    propagation_policy: str | None = None
    dry_run: list[str] | None = None


class _DeletionRequest(msgspec.Struct, frozen=True):
    options: _DeleteOptions
    document: Json

    @property
    def says_propagation(self) -> bool:
        """Whether it is said what becomes of dependents."""
        return self.options.propagation_policy is not None or self.options.orphan_dependents is not None

    @property
    def finalizer(self) -> str | None:
        """The finalizer that carries out how dependents are dealt with: empty for none, None to leave it as it is."""
        if self.options.propagation_policy is not None:
            return _POLICIES[self.options.propagation_policy]
        if self.options.orphan_dependents is not None:
            return _ORPHAN if self.options.orphan_dependents else ""
        return None


def is_ripe(resource: ResourceType, value: Json) -> bool:
    """Returns True for an object that is marked for deletion and waits for nothing."""
    metadata = value["metadata"]
    if "deletionTimestamp" not in metadata or metadata.get("finalizers") or metadata.get("deletionGracePeriodSeconds"):
        return False
    return not (resource.deletion.has_spec_finalizers and value.get("spec", {}).get("finalizers"))


async def delete(call: ResourceCall) -> Reply:
    """Deletes an object, or marks it to be deleted when its finalizers and its grace period let it go."""
    return await retry_on_conflict(
        partial(_delete_named, call, call.info.namespace, call.info.name, await _deletion(call))
    )


async def _delete_named(call: ResourceCall, namespace: str, name: str, deletion: _DeletionRequest) -> Reply:
    found = await call.kernel.registry.get(call.resource, namespace, name)
    return await _delete_one(call, found.stored, deletion)


async def delete_all(call: ResourceCall) -> Reply:
    """Deletes every object that is meant; answered with the list of them."""
    asked_limit(call.request)
    selectors = await call.read_query(lambda: selectors_of(call.request))
    refuse_list_options(call.request)
    selection = selection_of(selectors, call.resource)
    deletion, storage = await _deletion(call), call.kernel.registry.storage
    listed = await list_page(storage, call.resource, call.request, selection, call.info.namespace)
    for stored in listed.items:
        await _delete_listed(call, stored, deletion)
    form, items = call.form(), await seen_all(call.resource, listed.items)
    body = list_reply(items, listed.metadata, call.resource, form, call.request)
    return Reply(200, body, content_type=form.media_type, warnings=call.warnings)


async def _delete_listed(call: ResourceCall, stored: Stored, deletion: _DeletionRequest) -> None:
    """As it is by now; whatever is gone already is as it should be."""
    metadata = decoded(stored)["metadata"]
    try:
        await retry_on_conflict(partial(_delete_named, call, metadata.get("namespace", ""), metadata["name"], deletion))
    except StatusError as refusal:
        if refusal.code != 404:
            raise


async def _delete_one(call: ResourceCall, stored: Stored, deletion: _DeletionRequest) -> Reply:
    found = Found(await value_of(call.resource, stored), stored)
    check_preconditions(call, found.value["metadata"], deletion.options.preconditions)
    attributes = await call.admitted("DELETE", None, found.value, deletion.document)
    await call.validated(attributes, None)
    marked = _marked(call, found.value, deletion)
    if is_ripe(call.resource, marked):
        if call.dry_run and _finalizers(marked) != _finalizers(found.value):
            return call.answer_value(marked)  # what a real deletion would have written before the object went
        return await _gone(call, await _ended(call, found, marked))
    status = 202 if deletion.options.orphan_dependents is False else 200
    if call.dry_run:
        return call.answer_value(marked, status)
    stored = await call.kernel.registry.update(call.resource, await stored_form(call.resource, marked), found.stored)
    return await call.answer(stored, status)


def _finalizers(value: Json) -> list[str]:
    found: list[str] = value["metadata"].get("finalizers") or []
    return found


def _marked(call: ResourceCall, value: Json, deletion: _DeletionRequest) -> Json:
    """The object with its deletion mark; one that has it already keeps it, unless its time is shortened."""
    metadata = {**value["metadata"]}
    _set_propagation(metadata, deletion.finalizer if call.resource.deletion.has_dependents else "")
    if _orphans_by_default(call, deletion) and _FOREGROUND not in metadata.get("finalizers", ()):
        _set_propagation(metadata, _ORPHAN)
    grace = call.resource.strategy.grace_seconds(value, deletion.options.grace_period_seconds)
    known = metadata.get("deletionGracePeriodSeconds")
    if known is None or grace < known:
        metadata["deletionGracePeriodSeconds"] = grace
        if known is not None or "deletionTimestamp" not in metadata:
            ends = call.kernel.clock.now() + timedelta(seconds=min(grace, _LONGEST_GRACE))
            metadata["deletionTimestamp"] = format_time(truncate_to_seconds(ends))
        if "deletionTimestamp" not in value["metadata"] and metadata.get("generation"):
            metadata["generation"] += 1
    marked = {**value, "metadata": metadata}
    if call.resource.mark_deleted is not None:
        call.resource.mark_deleted(marked)
    return marked


def _set_propagation(metadata: Json, finalizer: str | None) -> None:
    if finalizer is None:
        return
    others = [known for known in metadata.get("finalizers", ()) if known not in {_ORPHAN, _FOREGROUND}]
    finalizers = [*others, finalizer] if finalizer else others
    if finalizers:
        metadata["finalizers"] = finalizers
    else:
        metadata.pop("finalizers", None)


async def _ended(call: ResourceCall, found: Found, marked: Json) -> Found:
    """Stores the deletion mark of an object before its removal, where its kind does: watchers see both."""
    grace = "deletionGracePeriodSeconds"
    if not call.resource.deletion.marks_first or found.value["metadata"].get(grace) == marked["metadata"].get(grace):
        return found
    if call.dry_run:
        return Found(marked, Stored(found.stored.key, encoded(marked), found.stored.revision))
    stored = await call.kernel.registry.update(call.resource, marked, found.stored)
    return Found(decoded(stored), stored)


async def removed(call: ResourceCall, found: Found) -> Stored:
    """Takes the object out of the store."""
    return await call.kernel.registry.delete(call.resource, found.value["metadata"]["name"], found.stored)


async def _gone(call: ResourceCall, found: Found) -> Reply:
    stored = found.stored if call.dry_run else await removed(call, found)
    if call.resource.returns_deleted:
        return await call.answer(stored)
    metadata = found.value["metadata"]
    details: Json = {"name": metadata["name"], "group": call.resource.group, "kind": call.resource.plural}
    details = {key: value for key, value in details.items() if value} | {"uid": metadata["uid"]}
    body: Json = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
    return Reply(200, msgspec.json.encode(body), warnings=call.warnings)


def check_preconditions(call: ResourceCall, metadata: Json, wanted: DeletePreconditions | None) -> None:
    """Refuses with 409 if another object is there, or another version of it."""
    if wanted is None:
        return
    for what, field, asked, since in (
        ("UID", "uid", wanted.uid, "deleted and then recreated"),
        ("ResourceVersion", "resourceVersion", wanted.resource_version, "modified"),
    ):
        if asked is not None and asked != metadata[field]:
            record = f"the {what} in record ({metadata[field]}). The object might have been {since}"
            why = f"the {what} in the precondition ({asked}) does not match {record}"
            if call.resource.deletion.checks_in_storage:
                why = f"Precondition failed: {what} in precondition: {asked}, {what} in object meta: {metadata[field]}"
                raise conflict("", call.resource.plural, metadata["name"], why)
            raise conflict(call.resource.group, call.resource.kind, metadata["name"], why)


def _orphans_by_default(call: ResourceCall, deletion: _DeletionRequest) -> bool:
    return call.resource.deletion.orphans_dependents and not deletion.says_propagation


async def _deletion(call: ResourceCall) -> _DeletionRequest:
    """The options of the body, and where there is none, of the query."""
    document: Json = {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1"}
    given = await call.read_body(lambda: _from_body(call)) if call.request.body else _from_query(call)
    document.update({key: value for key, value in given.items() if key not in document})
    if faults := schema_of(_DELETE_OPTIONS).faults(document):
        raise bad_request(faults[0].message)
    try:
        options = msgspec.convert(document, _DeleteOptions)
    except msgspec.ValidationError as error:
        raise bad_request(f"cannot be handled as a DeleteOptions: {error}") from None
    _refuse_options(options)
    call.dry_run = "All" in (options.dry_run or ())
    deletion = _DeletionRequest(options, document)
    if _orphans_by_default(call, deletion) and call.resource.deletion.orphan_warning:
        call.warnings.append(call.resource.deletion.orphan_warning)
    return deletion


def _from_body(call: ResourceCall) -> Json:
    return decode_options(call.request.body, call.request.headers.get("content-type", ""), "DeleteOptions")


def _from_query(call: ResourceCall) -> Json:
    found: Json = {}
    if call.request.parameter("gracePeriodSeconds"):
        found["gracePeriodSeconds"] = parsed_integer(call.request, "gracePeriodSeconds")
    if policy := call.request.parameter("propagationPolicy"):
        found["propagationPolicy"] = policy
    if text := call.request.parameter("orphanDependents"):
        found["orphanDependents"] = boolean(text)
    if dry_run := call.request.query.get("dryRun"):
        found["dryRun"] = list(dry_run)
    return found


def _refuse_options(options: _DeleteOptions) -> None:
    faults, policy = [], options.propagation_policy
    if policy is not None and options.orphan_dependents is not None:
        why = "orphanDependents and deletionPropagation cannot be both set"
        faults.append(invalid("propagationPolicy", policy, why))
    if policy is not None and policy not in _POLICIES:
        faults.append(unsupported("propagationPolicy", policy, ["Foreground", "Background", "Orphan", "nil"]))
    if faults := [*faults, *dry_run_faults(options.dry_run or ())]:
        raise refusal_of("DeleteOptions", faults)
