"""Numbers that may be given as a part of another: 3, or 25%."""

from __future__ import annotations

from navarch.api.strconv import parse_int64

__all__ = ["fenceposts", "part_of"]


def part_of(value: int | str | None, whole: int, *, up: bool) -> int:
    """The number that is meant, of `whole`; a fraction of one counts as one, or if not `up` as none.

    >>> part_of("25%", 10, up=True), part_of("25%", 10, up=False), part_of(3, 10, up=True)
    (3, 2, 3)
    """
    if not isinstance(value, str):
        return value or 0
    percent = parse_int64(value.removesuffix("%")) or 0
    return -(-percent * whole // 100) if up else percent * whole // 100


def fenceposts(surge: int | str | None, unavailable: int | str | None, replicas: int) -> tuple[int, int]:
    """How many pods there may be beyond `replicas`, and how many may be missing; never none of both: nothing could move.

    >>> fenceposts("25%", "25%", 3), fenceposts(0, "10%", 3)
    ((1, 0), (0, 1))
    """
    more, fewer = part_of(surge, replicas, up=True), part_of(unavailable, replicas, up=False)
    return (more, fewer) if more or fewer else (0, 1)
