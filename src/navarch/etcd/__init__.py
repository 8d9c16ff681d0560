"""An asyncio client for etcd: keys, watches, leases, members, maintenance. Over etcd's own gateway, without gRPC."""

from navarch.etcd.client import EtcdClient
from navarch.etcd.kv import Operation
from navarch.etcd.leases import Lease, LeaseTime
from navarch.etcd.maintenance import HashKv, Versions
from navarch.etcd.messages import (
    AlarmMember,
    Compare,
    DeleteRequest,
    DeleteResponse,
    Header,
    KeyValue,
    Member,
    PutRequest,
    PutResponse,
    RangeRequest,
    RangeResponse,
    Status,
    TxnResponse,
    WatchEvent,
    WatchResponse,
    mod_revision_is,
    prefix_end,
    value_is,
    version_is,
)
from navarch.etcd.options import EtcdOptions, EtcdTls
from navarch.etcd.session import EtcdSession
from navarch.etcd.watch import WatchRequest

__all__ = [
    "AlarmMember",
    "Compare",
    "DeleteRequest",
    "DeleteResponse",
    "EtcdClient",
    "EtcdOptions",
    "EtcdSession",
    "EtcdTls",
    "HashKv",
    "Header",
    "KeyValue",
    "Lease",
    "LeaseTime",
    "Member",
    "Operation",
    "PutRequest",
    "PutResponse",
    "RangeRequest",
    "RangeResponse",
    "Status",
    "TxnResponse",
    "Versions",
    "WatchEvent",
    "WatchRequest",
    "WatchResponse",
    "mod_revision_is",
    "prefix_end",
    "value_is",
    "version_is",
]
