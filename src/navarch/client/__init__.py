"""The client: configuration, transport, typed verbs, one resumable watch."""

from navarch.client.bodies import JsonPatch, MergePatch, Preconditions, StrategicPatch
from navarch.client.call import RetryPolicy
from navarch.client.client import Client, connect
from navarch.client.config import Config, ExecPlugin, Impersonation, in_cluster, load
from navarch.client.discovery import ApiResource
from navarch.client.pods import ExecResult, Listener, LogLines, Output, PodStream, PortForward, Session
from navarch.client.reads import Listing, ObjectList
from navarch.client.rest_client import Options
from navarch.client.target import ALL, MetadataOnly, PartialObjectMetadata
from navarch.client.transport import Request, Response, Transport, WebSocket
from navarch.client.watch import Watch, WatchEvent, WatchOptions

__all__ = [
    "ALL",
    "ApiResource",
    "Client",
    "Config",
    "ExecPlugin",
    "ExecResult",
    "Impersonation",
    "JsonPatch",
    "Listener",
    "Listing",
    "LogLines",
    "MergePatch",
    "MetadataOnly",
    "ObjectList",
    "Options",
    "Output",
    "PartialObjectMetadata",
    "PodStream",
    "PortForward",
    "Preconditions",
    "Request",
    "Response",
    "RetryPolicy",
    "Session",
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
