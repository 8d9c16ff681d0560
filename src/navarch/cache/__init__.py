"""The cache: a local copy of the server's objects, as bytes.

- A collection holds the newest known version of every object of a kind (of a selection, in chosen namespaces).
- It is eventually what the server has: a change appears as soon as the watch shows it, in the server's order. Changes of
  different kinds have no order among each other.
- It is never older than a write that was made through it.
- Subscribers are told of each change once; what was deleted unseen is told as a deletion.
- A watch does not end: every failure leads back to it, and how long the server has not been heard of is known.
- Not promised: that every version of an object is told (a list has only the newest), or that a read is not older than
  what somebody else has written.
"""

from navarch.cache.cache import Cache
from navarch.cache.collection import Change, Collection
from navarch.cache.entry import Entry, Owner, entry_of, only_status_differs
from navarch.cache.informer import Informer, State
from navarch.cache.lookup import Lookup
from navarch.cache.selection import Cached, IndexFunction, Namespaces, as_cached

__all__ = [
    "Cache",
    "Cached",
    "Change",
    "Collection",
    "Entry",
    "IndexFunction",
    "Informer",
    "Lookup",
    "Namespaces",
    "Owner",
    "State",
    "as_cached",
    "entry_of",
    "only_status_differs",
]
