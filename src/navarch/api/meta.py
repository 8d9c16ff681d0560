"""The metadata of every object, and the fields of a status that all kinds share."""

from __future__ import annotations

import copy
from datetime import UTC, datetime
from typing import Annotated, Literal, overload

import msgspec

from navarch.api.markers import ListMap, Meta
from navarch.api.model import Model
from navarch.api.times import truncate_to_seconds

PENDING_TIME = datetime(1, 1, 1, tzinfo=UTC)
"""The transition time of a condition until the runtime writes the status; Go's zero time."""

ConditionStatus = Literal["True", "False", "Unknown"]
_QUALIFIED_NAME = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
)
_REASON = "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"


class OwnerReference(Model):
    """Names the owner of an object; the garbage collector deletes the object with its owner."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ManagedFields(Model):
    """The fields that one manager owns, as server-side apply records them; `fields_v1` stays bytes until it
    is decoded.
    """

    manager: str | None = None
    operation: str | None = None
    api_version: str | None = None
    time: datetime | None = None
    fields_type: str | None = None
    fields_v1: msgspec.Raw | msgspec.UnsetType = msgspec.field(name="fieldsV1", default=msgspec.UNSET)
    subresource: str | None = None


class ObjectMeta(Model, omit_empty=True):
    """The name, namespace, labels and history of an object. As in Go, an empty value is not sent."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    deletion_grace_period_seconds: int | None = None
    owner_references: Annotated[list[OwnerReference], ListMap("uid")] = []
    finalizers: list[str] = []
    self_link: str = ""
    managed_fields: list[ManagedFields] = []


class ListMeta(Model, omit_empty=True):
    """The metadata of a list: its resourceVersion, and the token that continues it."""

    resource_version: str = ""
    continue_: str = msgspec.field(name="continue", default="")
    remaining_item_count: int | None = None
    self_link: str = ""


class Condition(Model):
    """One condition of an object: its status, the time of its last transition, and the reason."""

    type: Annotated[str, Meta(max_length=316, pattern=_QUALIFIED_NAME)]
    """The type of the condition, in CamelCase, for example Available."""
    status: ConditionStatus
    """The status of the condition."""
    reason: Annotated[str, Meta(min_length=1, max_length=1024, pattern=_REASON)]
    """The reason of the last transition, one CamelCase word that programs can rely on."""
    message: Annotated[str, Meta(max_length=32768)] = ""
    """The reason of the last transition, a sentence for people."""
    last_transition_time: datetime
    """The time of the last transition of the status."""
    observed_generation: Annotated[int, Meta(ge=0)] | None = None
    """The generation of the object that the condition is based on."""


class Spec(Model):
    """The desired state. Subclass it; fields without a default are required."""


class Status(Model):
    """The observed state. Subclass it; every field needs a default, since a new object has no status yet."""

    observed_generation: int | None = None
    """The generation of the spec that this status is based on."""
    conditions: Annotated[list[Condition], ListMap("type")] = []
    """The conditions of the object."""

    def condition(self, type: str) -> Condition | None:  # noqa: A002 - Kubernetes' own word
        """Returns the condition of that type; None if there is none."""
        return next((known for known in self.conditions if known.type == type), None)

    def is_true(self, type: str) -> bool:  # noqa: A002 - Kubernetes' own word
        """Returns True if the condition of that type has the status "True"."""
        found = self.condition(type)
        return found is not None and found.status == "True"

    @overload
    def set_condition(
        self,
        type: str,
        status: bool | ConditionStatus,
        reason: str,
        message: str = "",
        /,
    ) -> bool: ...
    @overload
    def set_condition(self, condition: Condition, /) -> bool: ...
    def set_condition(
        self,
        type: str | Condition,  # noqa: A002 - Kubernetes' own word
        status: bool | ConditionStatus = "Unknown",
        reason: str = "",
        message: str = "",
        /,
    ) -> bool:
        """Adds a condition or changes the one of its type; returns True if anything changed.

        A status of True or False stands for "True" or "False". The transition time changes only with the status: the runtime
        supplies it when it writes the status of the reconciled object. A whole `Condition` brings its own time, which is
        truncated to seconds as on the server; raises `InvalidValueError` for a time without a time zone.

        >>> status = Status()
        >>> status.set_condition("Ready", False, "Starting", "1 of 3 pods is ready")
        True
        >>> status.is_true("Ready")
        False
        """
        if isinstance(type, Condition):
            return set_condition(self.conditions, type)
        text = status if isinstance(status, str) else ("True" if status else "False")
        known = self.condition(type)
        condition = Condition(
            type=type,
            status=text,
            reason=reason,
            message=message,
            last_transition_time=PENDING_TIME,
            observed_generation=None if known is None else known.observed_generation,
        )
        return set_condition(self.conditions, condition)


def set_condition(conditions: list[Condition], condition: Condition) -> bool:
    """Does what `Status.set_condition` does, for a plain list of conditions as built-in kinds have it."""
    condition = copy.copy(condition)
    condition.last_transition_time = truncate_to_seconds(condition.last_transition_time)
    for index, known in enumerate(conditions):
        if known.type == condition.type:
            if known.status == condition.status:
                condition.last_transition_time = known.last_transition_time
            conditions[index] = condition
            return known != condition
    conditions.append(condition)
    return True
