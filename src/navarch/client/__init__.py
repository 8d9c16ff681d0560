"""The client: configuration, transport, typed verbs, one resumable watch."""

from navarch.client.bodies import JsonPatch, MergePatch, Preconditions, StrategicPatch
from navarch.client.client import Client, connect
from navarch.client.config import Config, ExecPlugin, Impersonation, in_cluster, load
from navarch.client.core import Options
from navarch.client.discovery import ApiResource
from navarch.client.listing import Listing, ObjectList
from navarch.client.retry import Retry
from navarch.client.target import ALL, MetadataOnly, PartialObjectMetadata
from navarch.client.transport import Request, Response, Transport, WebSocket
from navarch.client.watch import Watch, WatchEvent, WatchOptions

__all__ = [
    "ALL",
    "ApiResource",
    "Client",
    "Config",
    "ExecPlugin",
    "Impersonation",
    "JsonPatch",
    "Listing",
    "MergePatch",
    "MetadataOnly",
    "ObjectList",
    "Options",
    "PartialObjectMetadata",
    "Preconditions",
    "Request",
    "Response",
    "Retry",
    "StrategicPatch",
    "Transport",
    "Watch",
    "WatchEvent",
    "WatchOptions",
    "WebSocket",
    "connect",
    "in_cluster",
    "load",
]
