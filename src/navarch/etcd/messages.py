"""etcd's messages, as its gateway reads and writes them: bytes in base64, 64 bit numbers as numbers or texts.

The names of fields are etcd's own. Fields that have their usual value are not sent.
"""

from __future__ import annotations

from typing import Literal

import msgspec

SortOrder = Literal["NONE", "ASCEND", "DESCEND"]
SortTarget = Literal["KEY", "VERSION", "CREATE", "MOD", "VALUE"]


class EtcdMessage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The base of all messages."""


class EmptyResponse(msgspec.Struct):
    """A response without fields that matter."""


class Header(EtcdMessage, frozen=True, kw_only=True):
    """The responding member, and the revision of its store."""

    cluster_id: int = 0
    member_id: int = 0
    revision: int = 0
    raft_term: int = 0


_NO_HEADER = Header()


class KeyValue(EtcdMessage, frozen=True, kw_only=True):
    """A key and its value. `version` counts its writes since it was created."""

    key: bytes
    value: bytes = b""
    create_revision: int = 0
    mod_revision: int = 0
    version: int = 0
    lease: int = 0


class RangeRequest(EtcdMessage, frozen=True, kw_only=True):
    """One key, or all keys from `key` up to, but not including, `range_end`.

    `revision` 0 is now, `limit` 0 is no limit. A `serializable` read is answered by one member alone and may be stale.
    """

    key: bytes
    range_end: bytes = b""
    limit: int = 0
    revision: int = 0
    sort_order: SortOrder = "NONE"
    sort_target: SortTarget = "KEY"
    serializable: bool = False
    keys_only: bool = False
    count_only: bool = False


class RangeResponse(EtcdMessage, frozen=True, kw_only=True):
    """`count` is how many there are in the range, whatever the limit was."""

    header: Header = _NO_HEADER
    kvs: list[KeyValue] = []
    more: bool = False
    count: int = 0


class PutRequest(EtcdMessage, frozen=True, kw_only=True):
    """Writes a key, and attaches it to a lease if one is given."""

    key: bytes
    value: bytes
    lease: int = 0
    prev_kv: bool = False


class PutResponse(EtcdMessage, frozen=True, kw_only=True):
    """`prev_kv` is the former value, if requested."""

    header: Header = _NO_HEADER
    prev_kv: KeyValue | None = None


class DeleteRequest(EtcdMessage, frozen=True, kw_only=True):
    """Deletes one key, or all keys from `key` up to, but not including, `range_end`."""

    key: bytes
    range_end: bytes = b""
    prev_kv: bool = False


class DeleteResponse(EtcdMessage, frozen=True, kw_only=True):
    """`deleted` counts the keys; `prev_kvs` has their values, if requested."""

    header: Header = _NO_HEADER
    deleted: int = 0
    prev_kvs: list[KeyValue] = []


class Compare(EtcdMessage, frozen=True, kw_only=True):
    """A condition of a transaction about one key."""

    key: bytes
    target: Literal["VERSION", "CREATE", "MOD", "VALUE", "LEASE"]
    result: Literal["EQUAL", "GREATER", "LESS", "NOT_EQUAL"] = "EQUAL"
    version: int | None = None
    create_revision: int | None = None
    mod_revision: int | None = None
    value: bytes | None = None
    lease: int | None = None


def mod_revision_is(key: bytes, revision: int) -> Compare:
    """The key was last written at that revision; 0: it does not exist."""
    return Compare(key=key, target="MOD", mod_revision=revision)


def version_is(key: bytes, version: int) -> Compare:
    """The key was written so many times since it was created; 0: it does not exist."""
    return Compare(key=key, target="VERSION", version=version)


def value_is(key: bytes, value: bytes) -> Compare:
    """The key has that value."""
    return Compare(key=key, target="VALUE", value=value)


class OperationResponse(EtcdMessage, frozen=True, kw_only=True):
    """The answer to one operation of a transaction: the field of its kind is set."""

    response_range: RangeResponse | None = None
    response_put: PutResponse | None = None
    response_delete_range: DeleteResponse | None = None


class TxnResponse(EtcdMessage, frozen=True, kw_only=True):
    """`succeeded` is true if all conditions held, so that the `success` operations ran."""

    header: Header = _NO_HEADER
    succeeded: bool = False
    responses: list[OperationResponse] = []


class EtcdEvent(EtcdMessage, frozen=True, kw_only=True):
    """A write; `prev_kv` is the former value, if requested and not compacted."""

    kv: KeyValue
    type: Literal["PUT", "DELETE"] = "PUT"
    prev_kv: KeyValue | None = None


class WatchResponse(EtcdMessage, frozen=True, kw_only=True):
    """Events up to the header's revision; without events, a progress notification."""

    header: Header = _NO_HEADER
    events: list[EtcdEvent] = []
    created: bool = False
    canceled: bool = False
    cancel_reason: str = ""
    compact_revision: int = 0
    fragment: bool = False


class Member(EtcdMessage, frozen=True, kw_only=True):
    """A member of the cluster; one that has not started yet has no name. A learner does not vote."""

    id: int = msgspec.field(default=0, name="ID")
    name: str = ""
    peer_urls: list[str] = msgspec.field(default_factory=list, name="peerURLs")
    client_urls: list[str] = msgspec.field(default_factory=list, name="clientURLs")
    is_learner: bool = msgspec.field(default=False, name="isLearner")


class MemberStatus(EtcdMessage, frozen=True, kw_only=True):
    """A member's own status. Sizes are in bytes; `errors` describes its alarms."""

    header: Header = _NO_HEADER
    version: str = ""
    db_size: int = msgspec.field(default=0, name="dbSize")
    db_size_in_use: int = msgspec.field(default=0, name="dbSizeInUse")
    leader: int = 0
    raft_index: int = msgspec.field(default=0, name="raftIndex")
    raft_term: int = msgspec.field(default=0, name="raftTerm")
    raft_applied_index: int = msgspec.field(default=0, name="raftAppliedIndex")
    errors: list[str] = []
    is_learner: bool = msgspec.field(default=False, name="isLearner")


class AlarmMember(EtcdMessage, frozen=True, kw_only=True):
    """An alarm that a member has raised: NOSPACE or CORRUPT."""

    member_id: int = msgspec.field(default=0, name="memberID")
    alarm: Literal["NONE", "NOSPACE", "CORRUPT"] = "NONE"


def prefix_end(prefix: bytes) -> bytes:
    """The end of the range of all keys with that prefix.

    >>> prefix_end(b"/registry/")
    b'/registry0'
    """
    stem = prefix.rstrip(b"\xff")
    return stem[:-1] + bytes([stem[-1] + 1]) if stem else b"\0"
