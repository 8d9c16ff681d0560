"""Compares both servers on random sequences; see docs/rig.md.

`PYTHONPATH=scripts:tests python -m differential --count 1000 --seed 1`
"""

from __future__ import annotations

import argparse
import asyncio
import sys

import rig
from differential.comparing import running
from differential.fuzzing import failures


def main() -> int:
    """Prints every failure; 1 if there is one."""
    parser = argparse.ArgumentParser(prog="differential", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--only", type=int, nargs="*", help="the indexes of sequences to try, instead of a count")
    parser.add_argument("--most", type=int, default=20, help="how many failures to find before giving up")
    asked = parser.parse_args()
    with rig.running() as cluster:
        return asyncio.run(_run(cluster, asked))


async def _run(cluster: rig.Cluster, asked: argparse.Namespace) -> int:
    indexes, count = asked.only or range(asked.count), 0
    async with running(cluster) as pair:
        async for failure in failures(pair, asked.seed, indexes):
            count += 1
            print(failure, end="\n\n", flush=True)  # noqa: T201 - what it is for
            if count == asked.most:
                break
    print(f"{len(indexes)} sequences of seed {asked.seed}: {count or 'no'} differences")  # noqa: T201 - what it is for
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
