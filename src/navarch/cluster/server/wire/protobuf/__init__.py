"""Decodes and encodes protobuf bodies, which Go clients send for built-in kinds."""

from navarch.cluster.server.wire.protobuf.messages import ProtobufEnvelope, message_of, opened
from navarch.cluster.server.wire.protobuf.wire import MalformedError
from navarch.cluster.server.wire.protobuf.writing import enveloped, framed_event

__all__ = ["MalformedError", "ProtobufEnvelope", "enveloped", "framed_event", "message_of", "opened"]
