"""What etcd knows a user by."""

from __future__ import annotations

import asyncio

__all__ = ["EtcdSession"]


class EtcdSession:
    """A token, until etcd forgets it. Clients of one cluster in the name of one user that share it log in once.

    For one event loop. `is_open` if etcd asks nobody who they are, as far as is known.
    """

    def __init__(self) -> None:
        self.token = ""
        self.is_open = False
        self.changing = asyncio.Lock()

    def __repr__(self) -> str:
        return f"<EtcdSession: {'known' if self.token else 'not known'}>"
