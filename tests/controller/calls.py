"""Who was reconciled, and why."""

from __future__ import annotations

from navarch.controller import Context
from operating import World


class Calls(list[tuple[str, tuple[str, ...]]]):
    """The name and the reasons of each reconcile."""

    def note(self, ctx: Context) -> None:
        self.append((ctx.key.name, ctx.reasons))

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self]

    def taken(self) -> list[str]:
        """The names so far; forgets them."""
        names = self.names
        self.clear()
        return names


async def settled(world: World, calls: Calls) -> list[str]:
    """Whom the last change led to."""
    await world.quiet(5)
    return calls.taken()
