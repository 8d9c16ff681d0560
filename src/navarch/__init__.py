"""The Operator Framework for Python: typed custom resources, a client for them, and a runtime for controllers.

The client and the runtime are imported when one of their names is first used: nobody waits for parts that are not needed.
"""

from typing import TYPE_CHECKING

from navarch._base.lazy_exports import lazy_exports
from navarch._version import __version__

if TYPE_CHECKING:
    from navarch.api import (
        Atomic,
        Column,
        Condition,
        Duration,
        Embedded,
        Immutable,
        IntOrString,
        Key,
        ListMap,
        ListSet,
        Meta,
        Model,
        Object,
        ObjectMeta,
        OneOf,
        Preserve,
        Quantity,
        RawSchema,
        Resource,
        Rule,
        Scale,
        SchemaPatch,
        Selectable,
        Spec,
        Status,
        field,
    )
    from navarch.cache import Cached
    from navarch.client import ALL, Client, Config, connect, load
    from navarch.controller import Backoff, Context, ElectionOptions, Permanent, Result, Retry
    from navarch.operator import Endpoints, Operator, Uses, WebhookServer, run
    from navarch.webhook import Review
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "api": (
                "Atomic",
                "Column",
                "Condition",
                "Duration",
                "Embedded",
                "Immutable",
                "IntOrString",
                "Key",
                "ListMap",
                "ListSet",
                "Meta",
                "Model",
                "Object",
                "ObjectMeta",
                "OneOf",
                "Preserve",
                "Quantity",
                "RawSchema",
                "Resource",
                "Rule",
                "Scale",
                "SchemaPatch",
                "Selectable",
                "Spec",
                "Status",
                "field",
            ),
            "cache": ("Cached",),
            "client": ("ALL", "Client", "Config", "connect", "load"),
            "controller": ("Backoff", "Context", "ElectionOptions", "Permanent", "Result", "Retry"),
            "operator": ("Endpoints", "Operator", "Uses", "WebhookServer", "run"),
            "webhook": ("Review",),
        },
    )

__all__ = [
    "ALL",
    "Atomic",
    "Backoff",
    "Cached",
    "Client",
    "Column",
    "Condition",
    "Config",
    "Context",
    "Duration",
    "ElectionOptions",
    "Embedded",
    "Endpoints",
    "Immutable",
    "IntOrString",
    "Key",
    "ListMap",
    "ListSet",
    "Meta",
    "Model",
    "Object",
    "ObjectMeta",
    "OneOf",
    "Operator",
    "Permanent",
    "Preserve",
    "Quantity",
    "RawSchema",
    "Resource",
    "Result",
    "Retry",
    "Review",
    "Rule",
    "Scale",
    "SchemaPatch",
    "Selectable",
    "Spec",
    "Status",
    "Uses",
    "WebhookServer",
    "__version__",
    "connect",
    "field",
    "load",
    "run",
]
