"""An embedded cluster with controllers, over HTTPS: `python -m fleets.embedded FOLDER SIMULATED_NODES`.

Says "ready" when it can be used, by the kubeconfig that is then in the folder, and ends when its input does.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from navarch._base.clock import SystemClock
from navarch.cluster.embedded.cluster import EmbeddedCluster
from navarch.cluster.embedded.components import ComponentOptions
from navarch.cluster.embedded.https_front import new_loop, serve_https
from navarch.cluster.embedded.program import tune_garbage_collector


async def main(folder: Path, simulated: int) -> None:
    ended = asyncio.Event()
    asyncio.get_running_loop().add_reader(sys.stdin.fileno(), ended.set)
    components = ComponentOptions(simulated=simulated)
    async with EmbeddedCluster(components=components) as cluster, serve_https(cluster) as access:
        (folder / "kubeconfig").write_bytes(access.kubeconfig_file())
        while simulated and cluster.simulated is None:
            await SystemClock().sleep(0.05)
        if cluster.simulated is not None:
            await cluster.simulated.ready.wait()
        print("ready", flush=True)
        tune_garbage_collector()
        await ended.wait()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(main(Path(sys.argv[1]), int(sys.argv[2])))
