"""Who owns whom."""

from __future__ import annotations

from navarch.api.meta import OwnerReference
from navarch.api.resource import Object
from navarch.errors import InvalidValueError

__all__ = ["controller_of", "is_owned_by", "owner_reference", "set_controller"]


def owner_reference(owner: Object, *, controller: bool = True) -> OwnerReference:
    """A reference to `owner`, which must have been read from a server: without a uid nothing can be owned."""
    if not owner.metadata.uid:
        raise InvalidValueError(
            f"expected an owner with a uid, got {owner.kind} {owner.name!r} without one; create it or read it first"
        )
    return OwnerReference(
        api_version=owner.api_version,
        kind=owner.kind,
        name=owner.name,
        uid=owner.metadata.uid,
        controller=controller,
        block_owner_deletion=True,
    )


def controller_of(child: Object) -> OwnerReference | None:
    """The owner that controls `child`, if it has one."""
    return next((owner for owner in child.metadata.owner_references if owner.controller), None)


def is_owned_by(child: Object, owner: Object) -> bool:
    """Whether `owner` is among the owners of `child`."""
    return any(known.uid == owner.metadata.uid for known in child.metadata.owner_references)


def set_controller(child: Object, owner: Object) -> None:
    """Makes `owner` the controller of `child`; raises `InvalidValueError` if another one already is."""
    _refuse_across_namespaces(child, owner)
    known = controller_of(child)
    if known is not None and known.uid != owner.metadata.uid:
        raise InvalidValueError(
            f"{child.kind} {child.name!r} is controlled by {known.kind} {known.name!r}; an object has one controller"
        )
    reference, references = owner_reference(owner), child.metadata.owner_references
    if not is_owned_by(child, owner):
        references = [*references, reference]
    child.metadata.owner_references = [reference if known.uid == reference.uid else known for known in references]


def _refuse_across_namespaces(child: Object, owner: Object) -> None:
    if owner.namespace and child.namespace != owner.namespace:
        raise InvalidValueError(
            f"{owner.kind} {owner.name!r} in namespace {owner.namespace!r} cannot own {child.kind} {child.name!r} in "
            f"{child.namespace or 'no namespace'!r}: the garbage collector would delete it; put both in one namespace"
        )
