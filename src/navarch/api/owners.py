"""Owner references. Owner and child may each be an object of a class or a `Dynamic`."""

from __future__ import annotations

from navarch.api.codec import decode, encode, to_builtins
from navarch.api.kind import Dynamic, Kind
from navarch.api.meta import OwnerReference
from navarch.api.resource import Object
from navarch.errors import InvalidValueError

Anything = Object | Dynamic


def owner_reference(owner: Anything, *, controller: bool = True) -> OwnerReference:
    """Returns a reference to `owner`, which must come from a server: an owner needs a uid."""
    api_version, kind = _type_of(owner)
    if not _uid(owner):
        raise InvalidValueError(
            f"expected an owner with a uid, got {kind} {owner.name!r} without one; create it or read it first"
        )
    return OwnerReference(
        api_version=api_version,
        kind=kind,
        name=owner.name,
        uid=_uid(owner),
        controller=controller,
        block_owner_deletion=True,
    )


def controller_of(child: Anything) -> OwnerReference | None:
    """Returns the owner reference that controls `child`; None if there is none."""
    return next((owner for owner in _references(child) if owner.controller), None)


def is_owned_by(child: Anything, owner: Anything) -> bool:
    """Returns True if `child` has an owner reference to `owner`."""
    return any(known.uid == _uid(owner) for known in _references(child))


def set_controller(child: Anything, owner: Anything) -> None:
    """Makes `owner` the controller of `child`, and sets the child's namespace to the owner's if it has none.

    Raises `InvalidValueError` if another owner controls it, or the two are in different namespaces.
    """
    _refuse_across_namespaces(child, owner)
    known = controller_of(child)
    if known is not None and known.uid != _uid(owner):
        raise InvalidValueError(
            f"{child.kind} {child.name!r} is controlled by {known.kind} {known.name!r}; an object has one controller"
        )
    reference, references = owner_reference(owner), _references(child)
    if not is_owned_by(child, owner):
        references = [*references, reference]
    _put(child, [reference if known.uid == reference.uid else known for known in references], owner.namespace)


def _type_of(owner: Anything) -> tuple[str, str]:
    """Returns apiVersion and kind. PartialObjectMetadata has its own on the wire; the caller knows the kind."""
    if owner.kind == "PartialObjectMetadata":
        kind = getattr(owner, "_of", None)
        if not isinstance(kind, Kind):
            raise InvalidValueError(
                f"expected an owner whose kind is known, got the metadata alone of {owner.name!r}; "
                f"read it with client.get(MetadataOnly(kind), ...), or read the whole object"
            )
        return kind.api_version, kind.kind
    if not owner.kind or not owner.api_version:
        raise InvalidValueError(f"expected an owner with apiVersion and kind, got {owner.name!r} without; set both")
    return owner.api_version, owner.kind


def _uid(target: Anything) -> str:
    if isinstance(target, Dynamic):
        return str((target.get("metadata") or {}).get("uid") or "")
    return target.metadata.uid


def _references(child: Anything) -> list[OwnerReference]:
    if isinstance(child, Dynamic):
        return decode(list[OwnerReference], encode((child.get("metadata") or {}).get("ownerReferences") or []))
    return child.metadata.owner_references


def _put(child: Anything, references: list[OwnerReference], namespace: str) -> None:
    """Sets the references, and the owner's namespace unless the owner is cluster-scoped."""
    namespace = namespace or child.namespace
    if isinstance(child, Dynamic):
        child.metadata["ownerReferences"] = to_builtins(references)
        if namespace:
            child.metadata["namespace"] = namespace
    else:
        child.metadata.owner_references = references
        child.namespace = namespace


def _refuse_across_namespaces(child: Anything, owner: Anything) -> None:
    """Raises for an owner in another namespace. An unset namespace is still open, unless the child's kind has none."""
    cluster_scoped = not isinstance(child, Dynamic) and not child.__kind__.namespaced
    if owner.namespace and (cluster_scoped or child.namespace not in {"", owner.namespace}):
        raise InvalidValueError(
            f"{owner.kind} {owner.name!r} in namespace {owner.namespace!r} cannot own {child.kind} {child.name!r} in "
            f"{child.namespace or 'no namespace'!r}: the garbage collector would delete it; put both in one namespace"
        )
