"""The etcd of a cluster's own."""

from __future__ import annotations

import socket
from pathlib import Path
from urllib.parse import urlsplit

from navarch._base.clock import SystemClock
from navarch.cluster.embedded.etcd_process import EtcdProcess
from navarch.etcd import EtcdClient


async def test_an_etcd_whose_port_somebody_took_begins_at_another(tmp_path: Path) -> None:
    """Between the moment at which it was free and the one at which etcd listens."""
    etcd = EtcdProcess(tmp_path / "etcd", SystemClock())
    (taken,) = etcd.options.endpoints
    with socket.create_server(("127.0.0.1", urlsplit(taken).port or 0)):
        async with etcd, EtcdClient(etcd.options) as client:
            assert etcd.options.endpoints != (taken,)
            await client.kv.put(b"/a", b"1")
