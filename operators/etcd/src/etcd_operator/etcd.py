"""What the operator asks of a cluster's etcd. Another way to reach it, with TLS or as another user, is another `Connect`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Final, Protocol

from etcd_operator.kinds import EtcdCluster
from etcd_operator.manifests import CLIENT_PORT, pod_of
from etcd_operator.observation import Alarm, Fingerprint, MemberSeen, Voice
from etcd_operator.versions import Version
from navarch.errors import EtcdError, EtcdUnavailableError
from navarch.etcd import AlarmMember, EtcdClient, EtcdOptions, Member

__all__ = ["Connect", "Etcd", "Gateways", "plain"]

_TIMEOUT: Final = 2.0
_HASH_SECONDS: Final = 15.0
"""A hash of gigabytes takes seconds; what takes longer is not compared."""
_NO_KEY: Final = b"\0etcd-operator"
"""Read for the sake of reading."""


class Etcd(Protocol):
    """One cluster's etcd, by the addresses of its pods. All but the questions raise an `EtcdError`."""

    async def voices(self) -> Mapping[str, Voice]:
        """What each member says that says anything."""
        ...

    async def members(self, *, agreed: bool) -> tuple[MemberSeen, ...] | None:
        """All members, as a quorum has agreed just now or as one of them knows; None if nobody can say."""
        ...

    async def alarms(self) -> tuple[tuple[int, Alarm], ...]:
        """The alarms of all members; none if nobody can say."""
        ...

    async def fingerprints(self, names: Sequence[str], revision: int) -> Mapping[str, Fingerprint]:
        """What members have up to that revision; of those that can say."""
        ...

    async def add(self, peer_url: str, *, learner: bool) -> None:
        """Makes room for a member."""
        ...

    async def promote(self, member: int) -> None:
        """Lets a learner vote; refused while it has not caught up."""
        ...

    async def remove(self, member: int) -> None:
        """Takes a member out."""
        ...

    async def move_leader(self, leader: str, to: int) -> None:
        """Lets another member lead."""
        ...

    async def compact(self, revision: int) -> None:
        """Forgets what was before."""
        ...

    async def defragment(self, name: str) -> None:
        """Gives space back."""
        ...

    async def disarm(self, member: int, alarm: Alarm) -> None:
        """Takes an alarm back."""
        ...


Connect = Callable[[EtcdCluster, Mapping[str, str]], AbstractAsyncContextManager[Etcd]]
"""Reaches the etcd of a cluster by the addresses of its pods, which may be none."""


@asynccontextmanager
async def plain(_: EtcdCluster, addresses: Mapping[str, str]) -> AsyncIterator[Etcd]:
    """Without TLS."""
    urls = {name: f"http://{address}:{CLIENT_PORT}" for name, address in addresses.items()}
    async with AsyncExitStack() as stack:
        yield Gateways(urls, lambda endpoints: stack.enter_async_context(EtcdClient(_options(endpoints))))


def _options(endpoints: Sequence[str]) -> EtcdOptions:
    """Each endpoint is asked once: who does not answer now is asked again at the next look."""
    return EtcdOptions(endpoints=tuple(endpoints), timeout=_TIMEOUT, connect_timeout=_TIMEOUT / 2, patience=0)


class Gateways:
    """etcd over the gateways of its members, by their URLs; `open` makes a client of some of them."""

    def __init__(self, urls: Mapping[str, str], open_client: Callable[[Sequence[str]], Awaitable[EtcdClient]]) -> None:
        self._urls = urls
        self._open = open_client
        self._voices: Mapping[str, Voice] = {}
        self._clients: dict[tuple[str, ...], EtcdClient] = {}

    async def voices(self) -> Mapping[str, Voice]:
        names = sorted(self._urls)
        said = await asyncio.gather(*(self._voice(name) for name in names))
        self._voices = {name: voice for name, voice in zip(names, said, strict=True) if voice is not None}
        return self._voices

    async def _at(self, *names: str) -> EtcdClient:
        urls = tuple(self._urls[name] for name in names)
        if urls not in self._clients:
            self._clients[urls] = await self._open(urls)
        return self._clients[urls]

    async def _any(self) -> EtcdClient:
        """Whoever serves: a learner would refuse, and who is silent would keep one waiting."""
        speak = [name for name, voice in self._voices.items() if not voice.learner]
        led = [name for name in speak if self._voices[name].leader]
        if not speak:
            raise EtcdUnavailableError("no member answers")
        return await self._at(*(led or speak))

    async def _voice(self, name: str) -> Voice | None:
        try:
            status = await (await self._at(name)).maintenance.status(self._urls[name])
        except EtcdError:
            return None
        return Voice(
            member=status.header.member_id,
            cluster=status.header.cluster_id,
            version=status.version,
            leader=status.leader,
            learner=status.is_learner,
            revision=status.header.revision,
            index=status.raft_index,
            size=status.db_size,
            in_use=status.db_size_in_use,
        )

    async def members(self, *, agreed: bool) -> tuple[MemberSeen, ...] | None:
        try:
            client = await self._any()
            if agreed and not self._confirms_members():
                await client.kv.get(_NO_KEY)
                agreed = False
            return _seen(await client.cluster.members(linearizable=agreed))
        except EtcdError:
            return None

    def _confirms_members(self) -> bool:
        """Whether all are new enough to ask a quorum who the members are; otherwise a read of any key asks it."""
        return all(Version.of(voice.version).confirms_members for voice in self._voices.values() if voice.version)

    async def alarms(self) -> tuple[tuple[int, Alarm], ...]:
        try:
            found = await (await self._any()).maintenance.alarms()
        except EtcdError:
            return ()
        return tuple((each.member_id, each.alarm) for each in found if each.alarm != "NONE")

    async def fingerprints(self, names: Sequence[str], revision: int) -> Mapping[str, Fingerprint]:
        said = await asyncio.gather(*(self._fingerprint(name, revision) for name in names))
        return {name: each for name, each in zip(names, said, strict=True) if each is not None}

    async def _fingerprint(self, name: str, revision: int) -> Fingerprint | None:
        try:
            async with asyncio.timeout(_HASH_SECONDS):
                said = await (await self._at(name)).maintenance.hash_kv(self._urls[name], revision=revision)
        except (EtcdError, TimeoutError):
            return None
        return Fingerprint(said.hash, said.compact_revision)

    async def add(self, peer_url: str, *, learner: bool) -> None:
        await (await self._any()).cluster.add([peer_url], learner=learner)

    async def promote(self, member: int) -> None:
        await (await self._any()).cluster.promote(member)

    async def remove(self, member: int) -> None:
        await (await self._any()).cluster.remove(member)

    async def move_leader(self, leader: str, to: int) -> None:
        await (await self._at(leader)).maintenance.move_leader(self._urls[leader], to=to)

    async def compact(self, revision: int) -> None:
        await (await self._any()).kv.compact(revision, physical=True)

    async def defragment(self, name: str) -> None:
        await (await self._at(name)).maintenance.defragment(self._urls[name])

    async def disarm(self, member: int, alarm: Alarm) -> None:
        await (await self._any()).maintenance.disarm(AlarmMember(member_id=member, alarm=alarm))


def _seen(members: Sequence[Member]) -> tuple[MemberSeen, ...]:
    found = (
        MemberSeen(id=each.id, name=pod_of(each.peer_urls), learner=each.is_learner, started=bool(each.name))
        for each in members
    )
    return tuple(sorted(found, key=lambda member: member.name))
