"""Creates and updates objects; patches share the storing."""

from __future__ import annotations

from navarch.api.json_patch import copy_json
from navarch.cluster.server.objects.fields import settled, shape_of, updated
from navarch.cluster.server.objects.registry import CHANGED, Found, retry_on_conflict, seen_value, stored_form
from navarch.cluster.server.objects.request_bodies import refuse_other_kind
from navarch.cluster.server.objects.types import ResourceType, Strategy
from navarch.cluster.server.pipeline.admission.attributes import Attributes
from navarch.cluster.server.pipeline.endpoints.call import ResourceCall, random_uuid
from navarch.cluster.server.pipeline.endpoints.delete import is_ripe, removed
from navarch.cluster.server.pipeline.endpoints.options import create_options, write_options
from navarch.cluster.server.wire.budget import current_budget
from navarch.cluster.server.wire.request import Json, Reply
from navarch.cluster.server.wire.status_errors import StatusError, bad_request, conflict, invalid, not_found
from navarch.errors import Cause

_SUFFIX = "bcdfghjklmnpqrstvwxz2456789"
_LONGEST_BASE = 58
_TRIES = 8
_MOST_DIGITS = 20
_OF_SERVER = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink")


def strategy_of(call: ResourceCall) -> Strategy:
    """The strategy of the resource, or of the subresource that is written to."""
    subresource = call.resource.subresources.get(call.info.subresource)
    return subresource.strategy if subresource and subresource.strategy else call.resource.strategy


def metadata_of(value: Json) -> Json:
    """The metadata; made where there is none, refused where it is no object."""
    metadata = value.get("metadata")
    if metadata is None:
        metadata = value["metadata"] = {}
    if not isinstance(metadata, dict):
        raise bad_request("json: cannot unmarshal into Go struct field .metadata of type v1.ObjectMeta")
    return metadata


async def create(call: ResourceCall) -> Reply:
    """A new object."""
    options = write_options("CreateOptions", call.request)
    value = await call.decoded()
    refuse_other_kind(value, call.resource)
    for field in _OF_SERVER:
        metadata_of(value).pop(field, None)
    return await store_new(call, value, options)


async def store_new(call: ResourceCall, value: Json, options: Json, *, owned: bool = False) -> Reply:
    """Takes a new object through defaults, admission and validation into the store, unless it is a dry run.

    `owned`: its fields have managers already. A request that creates an object without being a create (an update, an
    apply) needs the right to create as well; like Kubernetes, it is refused after validation and before validating admission.
    """
    place(call, metadata_of(value))
    strategy = call.resource.strategy

    def complete() -> None:
        strategy.default(value)
        if not owned:
            own(call, None, value)

    await current_budget().run(complete)
    attributes = await call.admitted("CREATE", value, None, options)
    value = _changed_by(attributes, value, strategy)
    if value["metadata"].get("name") or not value["metadata"].get("generateName"):
        return await _store_one(call, value, attributes)
    return await _store_generated(call, value, attributes)


def _changed_by(attributes: Attributes, value: Json, strategy: Strategy) -> Json:
    """What admission has made of the value; if it is another one, it gets its defaults again."""
    if attributes.value is value:
        return value
    assert attributes.value is not None
    strategy.default(attributes.value)
    return attributes.value


def place(call: ResourceCall, metadata: Json) -> None:
    """The namespace of the request is that of the object, which must not say otherwise."""
    if not call.resource.namespaced:
        metadata.pop("namespace", None)
        return
    wanted, given = call.info.namespace, metadata.get("namespace", "")
    if not wanted:
        raise bad_request("an empty namespace may not be set during creation")
    if given and given != wanted:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    metadata["namespace"] = wanted


async def _store_generated(call: ResourceCall, value: Json, attributes: Attributes) -> Reply:
    """Under a name that is made up now: who changes objects on their way in sees none, who checks them does."""
    for _ in range(_TRIES - 1):
        try:
            return await _store_one(call, _with_made_up_name(call, value), attributes)
        except StatusError as refusal:
            if refusal.reason != "AlreadyExists":
                raise
    return await _store_one(call, _with_made_up_name(call, value), attributes)


def _with_made_up_name(call: ResourceCall, value: Json) -> Json:
    base = value["metadata"]["generateName"][:_LONGEST_BASE]
    suffix = "".join(call.kernel.rng.choices(_SUFFIX, k=5))
    named: Json = copy_json(value)
    named["metadata"]["name"] = base + suffix
    return named


async def _store_one(call: ResourceCall, value: Json, attributes: Attributes) -> Reply:
    strategy = call.resource.strategy
    _begin(call, value)
    strategy.prepare_create(value, call.operation)
    faults = await current_budget().run(lambda: strategy.validate_create(value))
    _refuse_invalid(call.resource, value, faults)
    if call.info.verb != "create":
        call.require("create")
    await call.validated(attributes, value)
    call.warnings += strategy.warnings(value, None)
    if call.dry_run:
        await _refuse_existing(call, value["metadata"])
        return call.answer_value(value, 201)
    if _is_version(value["metadata"].get("resourceVersion", "")):
        raise StatusError(500, "", "resourceVersion should not be set on objects to be created")
    value["metadata"].pop("selfLink", None)
    stored = await call.kernel.registry.create(call.resource, await stored_form(call.resource, value))
    return await call.answer(stored, 201)


def _is_version(text: str) -> bool:
    return text.isascii() and text.isdecimal() and text.strip("0") != ""


async def _refuse_existing(call: ResourceCall, metadata: Json) -> None:
    await call.kernel.registry.refuse_existing(call.resource, metadata.get("namespace", ""), metadata["name"])


def _begin(call: ResourceCall, value: Json) -> None:
    """What only the server sets."""
    metadata = value["metadata"]
    metadata["uid"] = random_uuid(call.kernel.rng)
    metadata["creationTimestamp"] = call.now()


def _refuse_invalid(resource: ResourceType, value: Json, causes: list[Cause]) -> None:
    if causes:
        metadata = value["metadata"]
        raise invalid(resource.group, resource.kind, metadata.get("name") or metadata.get("generateName", ""), causes)


def own(call: ResourceCall, old: Json | None, value: Json) -> None:
    """The fields that were written belong to whoever wrote them: as he wrote them, before anybody else changes them."""
    managed = updated(
        old,
        value,
        shape_of(call.resource, call.kernel.catalog),
        manager=call.manager,
        subresource=call.info.subresource,
        api_version=call.resource.api_version,
        now=call.now(),
    )
    if managed:
        value["metadata"]["managedFields"] = managed
    else:
        value["metadata"].pop("managedFields", None)


async def update(call: ResourceCall) -> Reply:
    """A new version of an object: as a whole, or of the part that a subresource is."""
    options = write_options("UpdateOptions", call.request)
    value = await call.decoded()
    check_identity(call, metadata_of(value))
    if value["metadata"].get("resourceVersion"):
        return await _replace(call, value, options)
    return await retry_on_conflict(lambda: _replace(call, copy_json(value), options))


async def _replace(call: ResourceCall, value: Json, options: Json) -> Reply:
    found = await call.kernel.registry.find(call.resource, call.info.namespace, call.info.name)
    if found is None:
        return await _create_by_update(call, value, options)
    _check_version(call, found, value["metadata"])
    refuse_other_kind(value, call.resource)
    return await store_update(call, found, value, options)


async def _create_by_update(call: ResourceCall, value: Json, options: Json) -> Reply:
    if not call.resource.create_on_update or call.info.subresource:
        raise not_found(call.resource.group, call.resource.plural, call.info.name)
    refuse_uid(call, value["metadata"], call.resource.key(call.info.namespace, call.info.name), "")
    check_version(value["metadata"].get("resourceVersion", ""))
    if not call.dry_run:  # which shows what was sent
        value["metadata"].pop("resourceVersion", None)
    return await store_new(call, value, create_options(options))


def check_identity(call: ResourceCall, metadata: Json) -> None:
    """The namespace and the name of the request are those of the object, which must say the same name."""
    place(call, metadata)
    check_name(call, metadata)


def check_name(call: ResourceCall, metadata: Json) -> None:
    """400 for an object that does not say the name of the request."""
    given, name = metadata.get("name", ""), call.info.name
    if not given:
        why = f"the name of the object ({name} based on URL) was undeterminable: name must be provided"
        raise bad_request(why)
    if given != name:
        raise bad_request(f"the name of the object ({given}) does not match the name on the URL ({name})")


def check_version(text: str) -> None:
    """500 for a version of an object that is no number, as the real server has it."""
    if not text:
        return
    if not (text.isascii() and text.isdecimal()):
        raise StatusError(500, "", f'strconv.ParseUint: parsing "{text}": invalid syntax')
    if len(text.lstrip("0")) > _MOST_DIGITS or int(text) >= 2**64:
        raise StatusError(500, "", f'strconv.ParseUint: parsing "{text}": value out of range')


def refuse_unversioned(call: ResourceCall, version: str) -> None:
    """422 for an update that does not say what it replaces, where that has to be said."""
    resource = call.resource
    if not version and not resource.unconditional_update:
        why = "Invalid value: 0: must be specified for an update"
        cause = Cause("metadata.resourceVersion", "FieldValueInvalid", why)
        raise invalid(resource.group, resource.plural, call.info.name, [cause])


def _check_version(call: ResourceCall, found: Found, metadata: Json) -> None:
    """Whoever read an older version, or another object of that name, has to read again."""
    resource, given = call.resource, metadata.get("resourceVersion", "")
    current = found.value["metadata"]
    refuse_uid(call, metadata, found.stored.key, current["uid"])
    check_version(given)
    refuse_unversioned(call, given)
    if given and given != current["resourceVersion"]:
        raise conflict(resource.group, resource.plural, call.info.name, CHANGED)


def refuse_uid(call: ResourceCall, metadata: Json, key: str, uid: str) -> None:
    """409 for what is meant for another object of that name."""
    if metadata.get("uid") and metadata["uid"] != uid:
        place = key.removeprefix("/registry") if call.dry_run else key
        where = f"StorageError: invalid object, Code: 4, Key: {place}, ResourceVersion: 0"
        told = f"UID in precondition: {metadata['uid']}, UID in object meta: {uid}"
        why = f"{where}, AdditionalErrorMsg: Precondition failed: {told}"
        raise conflict(call.resource.group, call.resource.plural, call.info.name, why)


async def store_update(
    call: ResourceCall, found: Found, value: Json, options: Json, *, owned: bool = False, is_admitted: bool = False
) -> Reply:
    """Takes a new version through defaults, admission and validation into the store. `owned`: its fields have managers;
    `is_admitted`: admission has seen the change in another form.

    An object that was only waiting for its last finalizer goes with it.
    """
    strategy, old = strategy_of(call), await seen_value(call.resource, found)
    if not owned:
        _keep_managers(old, value)
    forgets = not owned and value["metadata"].get("managedFields") == []

    def complete() -> None:
        strategy.default(value)
        if forgets:
            value["metadata"]["managedFields"] = []
        if not owned:
            own(call, old, value)

    await current_budget().run(complete)
    attributes = None if is_admitted else await call.admitted("UPDATE", value, old, options)
    if attributes is not None:
        value = _changed_by(attributes, value, strategy)
    _keep_what_is_the_servers(old, value)
    strategy.prepare_update(value, old, call.operation)
    faults = await current_budget().run(lambda: strategy.validate_update(value, old))
    _refuse_invalid(call.resource, value, faults)
    if attributes is not None:
        await call.validated(attributes, value)
    call.warnings += strategy.warnings(value, old)
    return await _stored(call, found, settled(old, value))


async def _stored(call: ResourceCall, found: Found, value: Json) -> Reply:
    if call.dry_run:
        return call.answer_value(value)
    if is_ripe(call.resource, value):
        await removed(call, found)
        return call.answer_value(value)
    value["metadata"].pop("selfLink", None)  # it is never stored; who stores nothing shows it
    stored = await call.kernel.registry.update(call.resource, await stored_form(call.resource, value), found.stored)
    return await call.answer(stored)


def _keep_managers(old: Json, value: Json) -> None:
    """Whoever does not mention them leaves them as they are."""
    metadata, known = metadata_of(value), old["metadata"]
    if "managedFields" not in metadata and "managedFields" in known:
        metadata["managedFields"] = known["managedFields"]


def _keep_what_is_the_servers(old: Json, value: Json) -> None:
    """Whoever changes objects on their way in sees them as they were sent; whoever checks them, as they are stored."""
    metadata, known = metadata_of(value), old["metadata"]
    for field in ("generation", "creationTimestamp"):
        if field in known:
            metadata[field] = known[field]
        else:
            metadata.pop(field, None)
    metadata["uid"] = metadata.get("uid") or known["uid"]
    metadata["resourceVersion"] = known["resourceVersion"]
    for field in ("deletionTimestamp", "deletionGracePeriodSeconds"):
        if field in known:
            metadata[field] = known[field]
