"""An embedded server over HTTPS: `python -m serving.embedded FOLDER [ETCD_URL]`, in memory or in that etcd.

Says "ready" when it can be used, by the kubeconfig that is then in the folder, and ends when its input does.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from navarch.cluster.embedded.cluster import EmbeddedCluster
from navarch.cluster.embedded.https_front import new_loop, serve_https
from navarch.cluster.embedded.program import tune_garbage_collector
from navarch.cluster.storage import Storage
from navarch.cluster.storage.etcd import EtcdStorage
from navarch.cluster.storage.memory import MemoryStorage
from navarch.etcd import EtcdOptions


async def main(folder: Path, *etcd: str) -> None:
    storage: Storage = EtcdStorage(EtcdOptions(endpoints=etcd)) if etcd else MemoryStorage()
    ended = asyncio.Event()
    asyncio.get_running_loop().add_reader(sys.stdin.fileno(), ended.set)
    async with EmbeddedCluster(storage) as cluster, serve_https(cluster) as access:
        (folder / "kubeconfig").write_bytes(access.kubeconfig_file())
        print("ready", flush=True)
        tune_garbage_collector()
        await ended.wait()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(main(Path(sys.argv[1]), *sys.argv[2:]))
