"""Generates a CustomResourceDefinition from one class or several versions of one kind, and checks objects
against it.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from navarch.api.codec import to_builtins
from navarch.api.markers import Column, Scale
from navarch.api.resource import Object
from navarch.errors import DefinitionError, ValidationError
from navarch.schema.generation.annotations import author_place
from navarch.schema.generation.builder import Draft, draft
from navarch.schema.generation.lint import (
    column_schemas,
    dead_paths,
    envelope_faults,
    name_collisions,
    senseless,
    warn_of_unknown_formats,
)
from navarch.schema.inspection.manifest import definition_faults
from navarch.schema.inspection.structural import DefinitionFault, unexpected
from navarch.schema.json_schema import JsonSchema
from navarch.schema.values.schema import Schema


def check(obj: Object, old: Object | None = None) -> None:
    """Raises `ValidationError` with every cause if `obj` does not satisfy the schema of its own class.

    Validates as a server does, after defaulting; `old` is the object before an update. Checks the schema only, not
    names, labels or unknown fields.
    """
    schema = _schema_of_class(type(obj))
    found = schema.validate(_admitted(obj, schema), None if old is None else _admitted(old, schema))
    if found:
        kind = type(obj).__kind__
        raise ValidationError(f"{kind.kind} {obj.name!r} is not valid", found)


def _admitted(obj: Object, schema: Schema) -> Any:
    body = to_builtins(obj)
    schema.admit(body)
    return body


@lru_cache(maxsize=256)
def _schema_of_class(kind: type[Object]) -> Schema:
    return Schema(schema_of(kind, description_limit=0))


_OF_THE_KIND = ("group", "kind", "plural", "namespaced")
_OPTIONAL = ("singular", "list_kind", "short_names", "categories", "labels", "annotations")
_PLACES = {"namespaced": "spec.scope", "labels": "metadata.labels", "annotations": "metadata.annotations"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """Conversion between versions by a webhook: a service in the cluster, or a URL outside of it.

    `ca_bundle` is PEM; leave it out if another component injects it.
    """

    service: str | None = None
    namespace: str | None = None
    path: str | None = None
    port: int = 443
    url: str | None = None
    ca_bundle: bytes | None = None
    review_versions: tuple[str, ...] = ("v1",)


def crd(
    *versions: type[Object], conversion: Webhook | None = None, description_limit: int | None = None
) -> dict[str, Any]:
    """Returns the CustomResourceDefinition of a kind, as a manifest.

    Several classes are several versions of one kind; exactly one of them has `storage=True`. `description_limit` cuts
    every description to that many characters (0 removes them). Raises `DefinitionError` with every field that the API
    server would refuse.

    >>> from navarch.api import Resource, Spec, Status
    >>> class CacheSpec(Spec):
    ...     size: int = 1
    >>> class Cache(Resource[CacheSpec, Status], group="example.com", version="v1"): ...
    >>> crd(Cache)["metadata"]["name"]
    'caches.example.com'
    """
    if not versions:
        raise DefinitionError("expected at least one class to make a CRD of, got none; write crd(MyKind)")
    for version in versions:
        _require_kind(version)
    if conversion is not None:
        _require_webhook(conversion)
    drafts = _drafts(versions, description_limit)
    manifest = _manifest(versions, drafts, conversion)
    faults = [*_disagreements(versions), *definition_faults(manifest), *_senseless(manifest)]
    faults = faults or [*envelope_faults(manifest)]
    if faults:
        raise DefinitionError("\n".join(_explain(fault, versions, drafts) for fault in faults))
    for made in drafts:
        warn_of_unknown_formats(made.schema, made.places)
    return manifest


def schema_of(kind: type[Object], *, description_limit: int | None = None) -> JsonSchema:
    """Returns the structural schema of one kind, checked as `crd` checks it."""
    spec = crd(kind, description_limit=description_limit)["spec"]
    schema: JsonSchema = spec["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def _require_kind(version: Any) -> None:
    if isinstance(version, list | tuple):
        raise DefinitionError("expected classes one by one, got a list of them; write crd(*versions)")
    if not isinstance(version, type):
        name = type(version).__name__
        raise DefinitionError(f"expected a class, got an object of {name}; give the class, not an object: crd({name})")
    if version.__module__.startswith("navarch.k8s."):
        raise DefinitionError(
            f"expected a kind of your own, got {version.__name__}, which is built in: its kind needs no CRD, and its "
            f"schema is the server's; leave it out"
        )
    if not hasattr(version, "__declaration__"):
        raise DefinitionError(
            f"expected a class with group= and version=, got {version.__name__}; "
            f'write class {version.__name__}(Resource[...], group="example.com", version="v1")'
        )


def _require_webhook(conversion: Any) -> None:
    if not isinstance(conversion, Webhook):
        raise DefinitionError(f"expected conversion= as a Webhook(...), got {conversion!r}; leave it out for none")
    if isinstance(conversion.ca_bundle, str):
        raise DefinitionError("expected ca_bundle of Webhook as bytes, got text; write .encode(), or read_bytes()")


def _drafts(versions: tuple[type[Object], ...], description_limit: int | None) -> list[Draft]:
    drafts, faults = [], []
    for version in versions:
        try:
            made = _drafted(version, description_limit)
            drafts.append(replace(made, schema=_copied(made.schema)))
        except DefinitionError as error:
            faults.append(str(error))
    if faults:
        raise DefinitionError("\n".join(faults))
    return drafts


@lru_cache(maxsize=256)
def _drafted(version: type[Object], description_limit: int | None) -> Draft:
    """Returns the draft of a class, which never changes: an operator and the tests of it need the same one often."""
    return draft(version, description_limit=description_limit)


def _copied(schema: Any) -> Any:
    """Returns a copy, since callers may change their manifest."""
    if isinstance(schema, dict):
        return {key: _copied(value) for key, value in schema.items()}
    return [_copied(value) for value in schema] if isinstance(schema, list) else schema


def _manifest(versions: tuple[type[Object], ...], drafts: list[Draft], conversion: Webhook | None) -> dict[str, Any]:
    stored = _stored(versions)
    kind, declared = stored.__kind__, stored.__declaration__
    names: dict[str, Any] = {
        "plural": kind.plural,
        "singular": declared.singular,
        "kind": kind.kind,
        "listKind": declared.list_kind or f"{kind.kind}List",
    }
    if declared.short_names:
        names["shortNames"] = list(declared.short_names)
    if declared.categories:
        names["categories"] = list(declared.categories)
    metadata: dict[str, Any] = {"name": f"{kind.plural}.{kind.group}"}
    metadata |= {"labels": dict(declared.labels)} if declared.labels else {}
    metadata |= {"annotations": dict(declared.annotations)} if declared.annotations else {}
    spec: dict[str, Any] = {
        "group": kind.group,
        "names": names,
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "versions": [_version(version, made) for version, made in zip(versions, drafts, strict=True)],
    }
    if conversion is not None:
        spec["conversion"] = _conversion(conversion)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": spec,
    }


def _stored(versions: tuple[type[Object], ...]) -> type[Object]:
    """The version whose word counts where a manifest says something once."""
    return next((version for version in versions if version.__declaration__.storage), versions[0])


def _version(version: type[Object], made: Draft) -> dict[str, Any]:
    declared = version.__declaration__
    entry: dict[str, Any] = {"name": version.__kind__.version, "served": declared.served, "storage": declared.storage}
    if declared.deprecated:
        entry["deprecated"] = True
        if isinstance(declared.deprecated, str):
            entry["deprecationWarning"] = declared.deprecated
    entry["schema"] = {"openAPIV3Schema": made.schema}
    subresources = _subresources(version, declared.scale)
    if subresources:
        entry["subresources"] = subresources
    given: list[tuple[str, Column]] = [*made.columns, *((column.path or "", column) for column in declared.columns)]
    columns = column_schemas(made.schema, given, add_age=declared.age_column)
    if columns:
        entry["additionalPrinterColumns"] = columns
    if made.selectable:
        entry["selectableFields"] = [{"jsonPath": path} for path in made.selectable]
    return entry


def _subresources(version: type[Object], scale: Scale | None) -> dict[str, Any]:
    subresources: dict[str, Any] = {"status": {}} if version.__kind__.has_status else {}
    if scale is not None:
        paths = {
            "specReplicasPath": scale.spec_replicas,
            "statusReplicasPath": scale.status_replicas,
            "labelSelectorPath": scale.selector,
        }
        subresources["scale"] = {key: path for key, path in paths.items() if path is not None}
    return subresources


def _conversion(webhook: Webhook) -> dict[str, Any]:
    service = {"name": webhook.service, "namespace": webhook.namespace, "path": webhook.path, "port": webhook.port}
    client: dict[str, Any] = {}
    if webhook.url is not None:
        client["url"] = webhook.url
    if webhook.service is not None or webhook.namespace is not None:
        client["service"] = {key: value for key, value in service.items() if value is not None}
    if webhook.ca_bundle is not None:
        client["caBundle"] = base64.b64encode(webhook.ca_bundle).decode()
    return {
        "strategy": "Webhook",
        "webhook": {"clientConfig": client, "conversionReviewVersions": list(webhook.review_versions)},
    }


def _senseless(manifest: dict[str, Any]) -> Iterator[DefinitionFault]:
    """What the server takes although it cannot be meant."""
    yield from name_collisions(manifest["spec"]["names"])
    for index, version in enumerate(manifest["spec"]["versions"]):
        path = f"spec.versions[{index}]"
        yield from senseless(version["schema"]["openAPIV3Schema"], f"{path}.schema.openAPIV3Schema")
        yield from dead_paths(version, path)


def _disagreements(versions: tuple[type[Object], ...]) -> Iterator[DefinitionFault]:
    """What a manifest can say only once, and the classes say differently."""
    stored = _stored(versions)
    said = _said_once(stored)
    for other in versions:
        unsaid: tuple[Any, ...] = (None, (), {}, "", other.__kind__.kind.lower())
        for name, got in _said_once(other).items():
            optional = name in _OPTIONAL
            if got == said[name] or (optional and got in unsaid):
                continue
            yield unexpected(
                _PLACES.get(name, "spec.names"),
                f"every version to have {name}={said[name]!r} as {stored.__name__} has",
                f"{got!r} on {other.__name__}",
                f"say it on {stored.__name__} alone, which is stored"
                if optional
                else f"write {name}={said[name]!r} there, or make a CRD of its own",
            )


def _said_once(version: type[Object]) -> dict[str, Any]:
    said = {name: getattr(version.__kind__, name) for name in _OF_THE_KIND}
    return said | {name: getattr(version.__declaration__, name) for name in _OPTIONAL}


def _explain(fault: DefinitionFault, versions: tuple[type[Object], ...], drafts: list[Draft]) -> str:
    """The fault at the place that the classes' author knows."""
    for index, made in enumerate(drafts):
        inside = f"spec.versions[{index}].schema.openAPIV3Schema"
        if fault.field.startswith(inside):
            place = author_place(fault.field[len(inside) :], made.places)
            return f"{place}: {fault.message}; {fault.remedy}"
        if fault.field.startswith(f"spec.versions[{index}]"):
            return f"{versions[index].__name__} ({fault.field}): {fault.message}; {fault.remedy}"
    return f"{versions[0].__name__} ({fault.field}): {fault.message}; {fault.remedy}"
