"""Installs or verifies the CustomResourceDefinitions of an operator's kinds when it starts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple, get_args

from navarch.api import Dynamic, Kind, Resource
from navarch.api.merge_patch import differing_paths
from navarch.client import Client
from navarch.errors import (
    AlreadyExists,
    Conflict,
    CrdError,
    DefinitionError,
    Forbidden,
    InvalidValueError,
    NotFound,
)
from navarch.observe.logs import logger
from navarch.operator.permissions import check_permissions, crd_permissions
from navarch.operator.roles import CrdPolicy
from navarch.webhook.crd_conversion import has_section, with_published_bundle

__all__ = [
    "CrdFindings",
    "CrdPolicy",
    "SchemaDifference",
    "inspect_crds",
    "install_crd",
    "managers_of_spec",
    "prepare_crds",
]

"""`install` brings the CRDs and keeps them up to date, but breaks no object and takes over no CRD of another manager;
`force` does that, too. `verify` demands that the CRDs are there, `ignore` does not look."""

Custom = type[Resource[Any, Any]]

_log = logger("navarch.operator.crds")

_CRDS = Kind(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", plural="customresourcedefinitions", namespaced=False
)
_ATTEMPTS = 10
_PATHS_SHOWN = 5
_CHANGES_SHOWN = 20
_FORCE = 'Operator(..., crds="force")'


async def prepare_crds(
    client: Client,
    kinds: Iterable[Custom],
    policy: CrdPolicy,
    conversions: Mapping[str, Mapping[str, Any]] | None = None,
) -> None:
    """Installs or verifies the CRDs of these kinds; several classes may be versions of one kind.

    `conversions` has the `spec.conversion` of CRDs whose objects the operator converts, by the name of the CRD.

    `install` and `force` write only what differs, as the client's field manager, and return when all versions are served.
    `verify` writes nothing; a schema that differs is logged as a warning. Raises `CrdError` for a CRD that cannot be used or
    must not be overwritten, `MissingPermissionsError` if the operator may not write it, `DefinitionError` for classes that no
    CRD can be made of.
    """
    if policy not in get_args(CrdPolicy):
        raise InvalidValueError(f"expected crds to be one of {', '.join(get_args(CrdPolicy))}, got {policy!r}")
    if policy == "ignore":
        return
    try:
        if policy == "verify":
            await _verify(client, kinds)
            return
        for versions in _by_name(kinds).values():
            conversion = (conversions or {}).get(versions[0].__kind__.resource)
            await _install(client, versions, conversion, force=policy == "force")
    except Forbidden:
        await check_permissions(client, crd_permissions(policy))
        raise


def _by_name(kinds: Iterable[Custom]) -> dict[str, list[Custom]]:
    """Returns the versions of each kind, by the name of its CRD."""
    found: dict[str, list[Custom]] = {}
    for kind in dict.fromkeys(kinds):
        found.setdefault(kind.__kind__.resource, []).append(kind)
    return found


async def _read(client: Client, name: str) -> Dynamic | None:
    try:
        return await client.get(_CRDS, name)
    except NotFound:
        return None


# Installing


async def _install(
    client: Client, versions: Sequence[Custom], conversion: Mapping[str, Any] | None, *, force: bool
) -> None:
    from navarch.schema import crd  # noqa: PLC0415 - takes as long as all other imports of an operator together

    wanted = crd(*versions)
    if conversion is not None:
        wanted["spec"]["conversion"] = conversion
    await install_crd(client, wanted, force=force, versions=versions)


async def install_crd(
    client: Client,
    wanted: Mapping[str, Any],
    *,
    force: bool = False,
    is_converted: bool = False,
    remedy: str = _FORCE,
    versions: Sequence[Custom] = (),
) -> bool:
    """Applies the CRD as the client's field manager if it differs, and returns whether it did.

    `is_converted` says that the operator adds the conversion of its versions when it runs. `versions` are the classes of an
    operator that starts: a CRD of a later release that serves them stays as it is.

    Raises `CrdError` for a change that takes something away, and for a CRD of another manager, unless `force` is set; `remedy`
    is how the user sets it. A version with stored objects is never dropped.
    """
    declared = wanted
    for attempt in range(1, _ATTEMPTS + 1):
        found = await _read(client, wanted["metadata"]["name"])
        if conversion := declared["spec"].get("conversion"):
            wanted = {**declared, "spec": {**declared["spec"], "conversion": with_published_bundle(conversion, found)}}
        if found is not None and _is_up_to_date(wanted, found):
            return False
        _refuse_stored_versions(wanted, found)
        if versions and not force and found is not None and _is_of_later_release(versions, wanted, found):
            return False
        if not force:
            _refuse_to_break(wanted, found, client.options.manager, remedy)
            if not is_converted:
                _refuse_to_lose(wanted, found, remedy)
        try:
            await client.install(wanted, resource_version=_version(found))
        except (Conflict, AlreadyExists):  # somebody was faster: what may be written has to be judged anew
            if attempt == _ATTEMPTS:
                raise
        else:
            _log.info("installed CRD", crd=wanted["metadata"]["name"])
            return True
    raise AssertionError("the last attempt returns or raises")


def _version(found: Dynamic | None) -> str | None:
    return None if found is None else found.metadata.get("resourceVersion")


def _is_up_to_date(wanted: Mapping[str, Any], found: Dynamic) -> bool:
    """Returns whether nothing has to be written."""
    _refuse_deleted(found)
    if "conversion" in wanted["spec"] and not has_section(found, wanted["spec"]["conversion"]):
        return False
    return _is_same(wanted, found) and _condition(found, "Established").get("status") == "True"


def _is_same(wanted: Mapping[str, Any], found: Dynamic) -> bool:
    return not any(differing_paths(_comparable(found, wanted), _comparable(wanted, wanted)))


def _comparable(definition: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the part of a CRD that the classes decide: not foreign labels, and not the conversion."""
    spec = definition["spec"]
    return {
        "metadata": {
            name: {key: value for key, value in _metadata(definition, name).items() if key in _metadata(wanted, name)}
            for name in ("labels", "annotations")
        },
        "spec": {
            "group": spec["group"],
            "names": spec["names"],
            "scope": spec["scope"],
            "versions": {version["name"]: version for version in spec["versions"]},
        },
    }


def _metadata(definition: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    return definition["metadata"].get(name) or {}


def _refuse_deleted(found: Dynamic) -> None:
    if found.metadata.get("deletionTimestamp"):
        raise CrdError(
            f"CRD {found.name}: expected one that stays, got one that is being deleted with all of its objects; wait until "
            f"it is gone and start again"
        )


def _refuse_stored_versions(wanted: Mapping[str, Any], found: Dynamic | None) -> None:
    """Raises `CrdError` if the apply, which replaces all versions, would drop one with stored objects."""
    if found is None:
        return
    ours = {version["name"] for version in wanted["spec"]["versions"]}
    stored = set((found.get("status") or {}).get("storedVersions") or ()) - ours
    if not stored:
        return
    from navarch.schema.compatibility import newer_versions  # noqa: PLC0415 - takes as long as all other imports

    if newer := stored & {*newer_versions(found, wanted)}:
        raise CrdError(
            f"CRD {found.name}: expected to know its versions, but a later release stores objects as {_listed(newer)}, which "
            f"this one, with {_listed(ours)}, can neither read nor convert; run the later release"
        )
    raise CrdError(
        f"CRD {found.name}: expected to replace its versions by {_listed(ours)}, but objects may still be stored as "
        f"{_listed(stored)}; keep the classes of these versions and convert them (@operator.convert), or rewrite the objects "
        f"first: navarch migrate {found.name}"
    )


def _is_of_later_release(versions: Sequence[Custom], wanted: Mapping[str, Any], found: Dynamic) -> bool:
    """Returns whether a later release has installed the CRD: in a rolling update it stays as that release needs it.

    Raises `CrdError` if this release's versions are no longer served.
    """
    from navarch.schema.compatibility import newer_versions  # noqa: PLC0415 - as above

    newer = newer_versions(found, wanted)
    if not newer:
        return False
    if faults := [fault for version in versions for fault in _faults(version, found)]:
        raise CrdError(
            f"CRD {found.name}: expected to run beside the later release that installed version {_listed(newer)}, but "
            f"{'; '.join(faults)}; run the later release"
        )
    _log.warning("a later release has installed this CRD: it stays as it is", crd=found.name, versions=_listed(newer))
    return True


def _refuse_to_break(wanted: Mapping[str, Any], found: Dynamic | None, manager: str, remedy: str) -> None:
    """Raises `CrdError` if objects would lose fields or be refused, or if another manager installed the CRD."""
    from navarch.schema import compare_crds  # noqa: PLC0415 - as above

    name = wanted["metadata"]["name"]
    if found is not None and not _is_same(wanted, found):
        changes = compare_crds(found, wanted)
        others = managers_of_spec(found) - {manager}
        breaking = [change for change in changes if change.is_breaking and (others or change.rule != "versions")]
        if breaking:
            raise CrdError(
                f"CRD {name}: expected a change that every object and client survives, got one that takes something away:\n"
                f"{_changes(breaking)}\nkeep what is missing in the class, or accept the loss: {remedy}"
            )
        if others:
            differences = f":\n{_changes(changes)}\n" if changes else "; "
            raise CrdError(
                f"CRD {name}: expected to manage it alone, but {_listed(others)} applied it, and the operator's differs"
                f'{differences}let {_listed(others)} apply the operator\'s CRD and set crds="verify", or take it over: {remedy}'
            )


def _refuse_to_lose(wanted: Mapping[str, Any], found: Dynamic | None, remedy: str) -> None:
    """Raises `CrdError` if versions differ in their fields and nothing converts them."""
    from navarch.schema import compare_versions  # noqa: PLC0415 - as above

    name = wanted["metadata"]["name"]
    lost = compare_versions(_with_conversion(wanted, found))
    if lost:
        raise CrdError(
            f"CRD {name}: expected versions with the same fields, since nothing converts them, got fields that are lost:\n"
            f"{_changes(lost)}\nconvert the versions (@operator.convert), give all of them these fields, or accept the loss: {remedy}"
        )


def _with_conversion(wanted: Mapping[str, Any], found: Dynamic | None) -> Mapping[str, Any]:
    """Returns the CRD with the cluster's conversion, unless it has its own."""
    if found is None or "conversion" in wanted["spec"] or "conversion" not in found["spec"]:
        return wanted
    return {**wanted, "spec": {**wanted["spec"], "conversion": found["spec"]["conversion"]}}


def managers_of_spec(found: Dynamic) -> set[str]:
    """Returns the field managers of names, scope and versions; labels and the conversion may belong to others."""
    return {
        entry.get("manager", "")
        for entry in found.metadata.get("managedFields") or ()
        if {"f:versions", "f:names", "f:scope"} & entry.get("fieldsV1", {}).get("f:spec", {}).keys()
    }


def _changes(changes: Sequence[Any]) -> str:
    lines = [f"  {change}" for change in changes[:_CHANGES_SHOWN]]
    return "\n".join(lines + ([f"  and {len(changes) - _CHANGES_SHOWN} more"] if len(changes) > _CHANGES_SHOWN else []))


def _condition(found: Dynamic, kind: str) -> Mapping[str, Any]:
    conditions = (found.get("status") or {}).get("conditions") or ()
    return next((condition for condition in conditions if condition.get("type") == kind), {})


# Verifying


class SchemaDifference(NamedTuple):
    """A schema that has other fields in the cluster: those that only one side knows are lost, but nothing else breaks."""

    crd: str
    version: str
    differs_at: str


@dataclass(frozen=True, slots=True)
class CrdFindings:
    """How the cluster's CRDs compare with an operator's classes."""

    missing: list[str]
    faults: list[str]
    """Why objects could not be read or written."""
    differences: list[SchemaDifference]


async def inspect_crds(client: Client, kinds: Iterable[Custom]) -> CrdFindings:
    """Compares the CRDs of these kinds with the cluster's, and writes nothing."""
    findings = CrdFindings([], [], [])
    for name, versions in _by_name(kinds).items():
        found = await _read(client, name)
        if found is None:
            renamed = await _served_as(client, versions[0].__kind__)
            findings.faults.extend([f"{name}: {renamed}"] if renamed else [])
            findings.missing.extend([] if renamed else [f"{name} ({_named(versions)})"])
            continue
        unfit = [f"{name}: {fault}" for version in versions for fault in _faults(version, found)]
        findings.faults.extend(unfit)
        if not unfit:
            findings.differences.extend(_other_schemas(versions, found))
    return findings


async def _verify(client: Client, kinds: Iterable[Custom]) -> None:
    findings = await inspect_crds(client, kinds)
    for each in findings.differences:
        _log.warning(
            "the schema in the cluster is another one than the operator's; apply its CRD to have the same",
            crd=each.crd,
            version=each.version,
            differs_at=each.differs_at,
        )
    if findings.missing or findings.faults:
        raise CrdError("\n".join(_complaints(findings.missing, findings.faults)))


def _complaints(missing: Sequence[str], faults: Sequence[str]) -> Iterator[str]:
    if missing:
        yield (
            f"expected the cluster to have these CRDs, but they are missing: {', '.join(missing)}; apply their manifests "
            f'(in a project: navarch install), or let the operator bring them: Operator(..., crds="install")'
        )
    if faults:
        yield "expected the cluster's CRDs to fit the operator's classes, but they do not:"
        yield from (f"  {fault}" for fault in faults)
        yield (
            "apply the manifests that belong to this operator (in a project: navarch install), or let it bring them: "
            'Operator(..., crds="install")'
        )


async def _served_as(client: Client, kind: Kind) -> str:
    """Returns the CRD of the kind under another plural: a wrong plural makes the CRD look missing."""
    try:
        served = await client.discovery.resources(kind.api_version, fresh=True)
    except NotFound:
        return ""
    for resource in served:
        if resource.kind.kind == kind.kind:
            plural = resource.kind.plural
            return f"expected plural {kind.plural}, got {plural}; write plural={plural!r} on the class {kind.kind}"
    return ""


def _faults(version: Custom, found: Dynamic) -> Iterator[str]:
    """Yields why objects of this class could not be read or written."""
    kind = version.__kind__
    spec, scope = found["spec"], "Namespaced" if kind.namespaced else "Cluster"
    if found.metadata.get("deletionTimestamp"):
        yield "it is being deleted"
    accepted = _condition(found, "NamesAccepted")
    if accepted.get("status") == "False":
        yield f"its names are not accepted: {accepted.get('message', '')}"
    if spec["names"]["kind"] != kind.kind:
        yield f"expected kind {kind.kind}, got {spec['names']['kind']}"
    if spec["scope"] != scope:
        yield f"expected scope {scope}, got {spec['scope']}"
    entry = next((entry for entry in spec["versions"] if entry["name"] == kind.version), None)
    if entry is None or (version.__declaration__.served and not entry["served"]):
        served = [entry["name"] for entry in spec["versions"] if entry["served"]]
        yield f"expected version {kind.version} to be served, got {_listed(served)}"
    elif kind.has_status and "status" not in (entry.get("subresources") or {}):
        yield f"expected version {kind.version} to have the subresource status, got none"


def _other_schemas(versions: Sequence[Custom], found: Dynamic) -> Iterator[SchemaDifference]:
    """Yields the versions with fields that only the operator or only the CRD knows."""
    from navarch.schema import crd  # noqa: PLC0415 - takes as long as all other imports of an operator together

    try:
        wanted = crd(*versions)
    except DefinitionError as error:  # for example a version that is not stored, without the one that is
        _log.warning("cannot compare the schema of a CRD", crd=found.name, error=str(error))
        return
    theirs = {entry["name"]: entry for entry in found["spec"]["versions"]}
    for entry in wanted["spec"]["versions"]:
        paths = differing_paths(_schema(theirs[entry["name"]]), _schema(entry))
        first = list(islice(paths, _PATHS_SHOWN + 1))
        if first:
            shown = ", ".join(first[:_PATHS_SHOWN]) + (", ..." if len(first) > _PATHS_SHOWN else "")
            yield SchemaDifference(found.name, entry["name"], shown)


def _schema(version: Mapping[str, Any]) -> Any:
    return _without_descriptions(version.get("schema", {}).get("openAPIV3Schema", {}))


def _without_descriptions(schema: Any) -> Any:
    """Returns the schema without descriptions; a field of that name is not a text and stays."""
    if isinstance(schema, list):
        return [_without_descriptions(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: _without_descriptions(value)
        for key, value in schema.items()
        if key != "description" or not isinstance(value, str)
    }


def _named(versions: Iterable[Custom]) -> str:
    return ", ".join(f"{version.__kind__.kind} {version.__kind__.version}" for version in versions)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"
