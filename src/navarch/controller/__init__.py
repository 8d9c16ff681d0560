"""Controllers: the reconcile contract, what triggers it, what it can do, who may do it.

What is promised to a reconciler:

- It gets the object as it is now, as a private copy, and never for two objects of the same name at once.
- Whatever changes in what it declared leads to a reconcile that begins afterwards: of kinds in `reads`, what it looked at
  last. Several changes may lead to one.
- What it reads through its context is never older than what it wrote, or than what it was called for.
- Its own writes do not call it again; everybody else's do, also those that come between its read and its write.
- Its status is written once, at the end, if it differs; nothing else is written on the object but a finalizer, and that
  only where there is a cleanup.
- It ends within its time limit; whatever it raises harms no other.

Not promised: to be called for every change, or in the order of changes; that the world is as the cache says it is. So a
reconciler brings about what the object asks for, whatever was there before, and can be called again at any time.
"""

from navarch._base.backoff import Backoff
from navarch.cache.lookup import Lookup
from navarch.controller.context import Context
from navarch.controller.contract import Permanent, Result, Retry
from navarch.controller.controller import Controller
from navarch.controller.declaration import ControllerOptions, Declared
from navarch.controller.election import Election, ElectionOptions
from navarch.controller.events import Recorder
from navarch.controller.fence import Fence, FencedTransport
from navarch.controller.triggers import ByMetadata, Mapper, Predicate, any_change, wanted_change

__all__ = [
    "Backoff",
    "ByMetadata",
    "Context",
    "Controller",
    "ControllerOptions",
    "Declared",
    "Election",
    "ElectionOptions",
    "Fence",
    "FencedTransport",
    "Lookup",
    "Mapper",
    "Permanent",
    "Predicate",
    "Recorder",
    "Result",
    "Retry",
    "any_change",
    "wanted_change",
]
