"""Bodies in protobuf, which Go clients send for built-in kinds: read into the JSON that they stand for."""

from navarch.cluster.server.protobuf.envelope import Envelope, opened
from navarch.cluster.server.protobuf.messages import message_of
from navarch.cluster.server.protobuf.wire import MalformedError

__all__ = ["Envelope", "MalformedError", "message_of", "opened"]
