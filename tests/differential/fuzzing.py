"""Many sequences at once, and a report about each that shows a difference."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass

from differential.comparing import Pair
from differential.generating import sequence
from differential.shrinking import shrunk
from differential.steps import Difference, Step

_AT_ONCE = 12
_namespaces = (f"f{number}" for number in itertools.count(1))


@dataclass(frozen=True)
class Failure:
    """A sequence on which the servers differ, as short as it can be."""

    seed: int
    index: int
    steps: Sequence[Step]
    difference: Difference

    def __str__(self) -> str:
        lines = [f"{index}. {step}" for index, step in enumerate(self.steps)]
        return "\n".join([f"sequence {self.index} of seed {self.seed}:", *lines, str(self.difference)])


async def failures(pair: Pair, seed: int, indexes: Iterable[int], *, shrink: bool = True) -> AsyncIterator[Failure]:
    """Every failure among the sequences of those indexes."""
    waiting = iter(indexes)
    while together := list(itertools.islice(waiting, _AT_ONCE)):
        tried = [(index, sequence(seed, index)) for index in together]
        found = await asyncio.gather(*(pair.difference(steps, next(_namespaces)) for _, steps in tried))
        for (index, steps), difference in zip(tried, found, strict=True):
            if difference is not None:
                yield await _failure(pair, Failure(seed, index, steps, difference), shrink=shrink)


async def _failure(pair: Pair, failure: Failure, *, shrink: bool) -> Failure:
    if not shrink:
        return failure
    watches = failure.difference.step >= len(failure.steps)

    async def attempt(steps: Sequence[Step]) -> Difference | None:
        return await pair.difference(steps, next(_namespaces), watches=watches)

    steps = failure.steps if watches else failure.steps[: failure.difference.step + 1]
    shorter, difference = await shrunk(steps, failure.difference, attempt)
    return Failure(failure.seed, failure.index, shorter, difference)
