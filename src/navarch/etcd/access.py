"""Users and roles."""

from __future__ import annotations

from typing import Literal

import msgspec

from navarch.etcd.gateway import Gateway, Method

__all__ = ["Access"]


class _Nothing(msgspec.Struct):
    pass


def _method(path: str) -> Method[_Nothing]:
    return Method(f"/v3/auth/{path}", _Nothing, repeatable=False)


_ENABLE, _DISABLE = _method("enable"), _method("disable")
_ADD_USER, _ADD_ROLE = _method("user/add"), _method("role/add")
_GIVE_ROLE, _ALLOW = _method("user/grant"), _method("role/grant")
_SET_PASSWORD = _method("user/changepw")


class Access:
    """Who may do what. A cluster needs the user and the role `root` before access can be enabled."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def enable(self) -> None:
        """From now on nobody may do anything without a token."""
        await self._gateway.call(_ENABLE, {})

    async def disable(self) -> None:
        """Everybody may do everything."""
        await self._gateway.call(_DISABLE, {})

    async def add_user(self, name: str, password: str) -> None:
        """A new user, who may do nothing yet."""
        await self._gateway.call(_ADD_USER, {"name": name, "password": password})

    async def set_password(self, name: str, password: str) -> None:
        """A user's new password."""
        await self._gateway.call(_SET_PASSWORD, {"name": name, "password": password})

    async def log_in(self) -> bool:
        """Whether access is enabled, and this client's user is known. Raises `EtcdAccessError` for a wrong password.

        Nobody has to: what needs it does it by itself.
        """
        return await self._gateway.log_in()

    async def add_role(self, name: str) -> None:
        """A new role, which allows nothing yet."""
        await self._gateway.call(_ADD_ROLE, {"name": name})

    async def give_role(self, user: str, role: str) -> None:
        """The user may do what the role allows."""
        await self._gateway.call(_GIVE_ROLE, {"user": user, "role": role})

    async def allow(
        self, role: str, key: bytes, *, range_end: bytes = b"", how: Literal["READ", "WRITE", "READWRITE"] = "READWRITE"
    ) -> None:
        """The role allows that for one key, or for all keys from `key` up to `range_end`."""
        permission = {"permType": how, "key": key, "range_end": range_end}
        await self._gateway.call(_ALLOW, {"name": role, "perm": permission})
