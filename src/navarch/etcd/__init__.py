"""An asyncio client for etcd: keys, watches, leases, members and maintenance, over etcd's JSON gateway instead of gRPC."""

from navarch.etcd.client import EtcdClient
from navarch.etcd.kv import Operation
from navarch.etcd.leases import Lease, LeaseTime
from navarch.etcd.maintenance import HashKv, Versions
from navarch.etcd.messages import (
    AlarmMember,
    Compare,
    DeleteRequest,
    DeleteResponse,
    EtcdEvent,
    Header,
    KeyValue,
    Member,
    MemberStatus,
    PutRequest,
    PutResponse,
    RangeRequest,
    RangeResponse,
    TxnResponse,
    WatchResponse,
    mod_revision_is,
    prefix_end,
    value_is,
    version_is,
)
from navarch.etcd.options import EtcdOptions, EtcdSession, EtcdTls
from navarch.etcd.watch import WatchRequest

__all__ = [
    "AlarmMember",
    "Compare",
    "DeleteRequest",
    "DeleteResponse",
    "EtcdClient",
    "EtcdEvent",
    "EtcdOptions",
    "EtcdSession",
    "EtcdTls",
    "HashKv",
    "Header",
    "KeyValue",
    "Lease",
    "LeaseTime",
    "Member",
    "MemberStatus",
    "Operation",
    "PutRequest",
    "PutResponse",
    "RangeRequest",
    "RangeResponse",
    "TxnResponse",
    "Versions",
    "WatchRequest",
    "WatchResponse",
    "mod_revision_is",
    "prefix_end",
    "value_is",
    "version_is",
]
