"""Describes `metadata` and its fields for `kubectl explain`.

The data of the built-in kinds have no descriptions; these are our own.
"""

from __future__ import annotations

from typing import Final

from navarch.cluster.server.wire.request import Json
from navarch.k8s.published import META

_WORDS: Final[dict[str, dict[str, str]]] = {
    "ObjectMeta": {
        "": "ObjectMeta is what every stored object has: its names, its labels, who owns it, and what the server notes of it.",
        "annotations": "Annotations are texts of any form that tools and people keep with the object. Nothing is selected by "
        "them.",
        "creationTimestamp": "CreationTimestamp is a timestamp of when the server created the object. It cannot be set, and "
        "never changes. Null for lists.",
        "deletionGracePeriodSeconds": "DeletionGracePeriodSeconds says how long the object may take to end after somebody "
        "has deleted it. Set together with deletionTimestamp; it can only become shorter.",
        "deletionTimestamp": "DeletionTimestamp is when the object will be gone. The server sets it when somebody deletes an "
        "object that has a grace period or finalizers; from then on it can only end.",
        "finalizers": "Finalizers are the names of those who have something to do before the object may go. Each removes its "
        "own; the object goes when none is left.",
        "generateName": "GenerateName is a prefix, from which the server makes a name of its own by adding random letters, if "
        "no name is given.",
        "generation": "Generation counts how often what is wanted of the object has changed. The server sets it.",
        "labels": "Labels are names and values by which objects are selected.",
        "managedFields": "ManagedFields notes who has set which fields, and how. The server keeps it; it decides about "
        "conflicts of server-side apply.",
        "name": "Name tells the object from all others of its kind in its namespace. It cannot be changed.",
        "namespace": "Namespace is where the object lives; empty for objects of the whole cluster. It cannot be changed.",
        "ownerReferences": "OwnerReferences are the objects that this one belongs to: it is deleted when all of them are gone. "
        "At most one of them is its controller.",
        "resourceVersion": "ResourceVersion is the version of the object in the store. Clients compare it for equality alone, "
        "send it back to change just this version, and begin watches with it.",
        "selfLink": "SelfLink is no longer set by any server.",
        "uid": "UID is this object's alone, for ever: one that is made later under the same name has another.",
    },
    "ListMeta": {
        "": "ListMeta is what every list has.",
        "continue": "Continue is set if there is more: it is sent back as it is to get the next part, for as long as the "
        "server remembers.",
        "remainingItemCount": "RemainingItemCount is about how many objects follow, if the server knows.",
        "resourceVersion": "ResourceVersion is the version of the store that the list shows; a watch can begin with it.",
        "selfLink": "SelfLink is no longer set by any server.",
    },
    "OwnerReference": {
        "": "OwnerReference names an object that another belongs to, in the same namespace or in none.",
        "apiVersion": "APIVersion is the group and version of the owner.",
        "blockOwnerDeletion": "BlockOwnerDeletion keeps an owner that is deleted in the foreground until this object is gone.",
        "controller": "Controller is true for the one owner that manages the object.",
        "kind": "Kind is the kind of the owner.",
        "name": "Name is the name of the owner.",
        "uid": "UID is the UID of the owner.",
    },
    "ManagedFieldsEntry": {
        "": "ManagedFieldsEntry says which fields one manager has set by one kind of request.",
        "apiVersion": "APIVersion is the version in which the fields are named.",
        "fieldsType": "FieldsType is the form in which they are listed. There is one: FieldsV1.",
        "fieldsV1": "FieldsV1 lists the fields.",
        "manager": "Manager is who has set them.",
        "operation": "Operation is Apply for server-side apply, and Update for all else.",
        "subresource": "Subresource is the one through which they were set; empty for the object itself.",
        "time": "Time is when the entry last changed.",
    },
}


def described(name: str, schema: Json) -> Json:
    """The schema of this full name with its words, if there are any; a copy then."""
    package, _, short = name.rpartition(".")
    words = _WORDS.get(short) if package == META else None
    if words is None:
        return schema
    properties = {
        field: {"description": words[field], **member} if field in words else member
        for field, member in schema["properties"].items()
    }
    return {"description": words[""], **schema, "properties": properties}
