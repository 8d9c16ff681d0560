"""`Etcd` over the JSON gateways of the members."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final, Protocol

from etcd_operator.etcd import Etcd
from etcd_operator.kinds import EtcdCluster
from etcd_operator.manifests import pod_name_of
from etcd_operator.observation import Alarm, AuthState, KeyspaceHash, MemberReport, ObservedMember
from etcd_operator.tls import EtcdCredentials
from etcd_operator.versions import EtcdVersion
from navarch.errors import EtcdAccessError, EtcdError, EtcdRefusedError, EtcdUnavailableError
from navarch.etcd import AlarmMember, EtcdClient, EtcdOptions, EtcdSession, EtcdTls, Member, MemberStatus

MAX_ANSWER_BYTES: Final = 16 << 20
"""Limits a response: members run an image that their owner chose, and must not fill the operator's memory."""

_TIMEOUT: Final = 2.0
_HASH_SECONDS: Final = 15.0
"""Limits a hash request; hashing gigabytes takes seconds."""
_IS_THERE: Final = "already exists"
_NO_KEY: Final = b"\0etcd-operator"
"""A key that nobody writes: reading it makes a member catch up with the quorum."""


class GatewayConnector:
    """Connects to etcd over the gateways of its members. It keeps one login per cluster, because etcd makes logins slow."""

    def __init__(self) -> None:
        self._sessions: dict[str, tuple[str, EtcdSession]] = {}

    @asynccontextmanager
    async def __call__(
        self, cluster: EtcdCluster, urls: Mapping[str, str], keys: EtcdCredentials
    ) -> AsyncIterator[Etcd]:
        """Opens the etcd of a cluster for the duration of the block."""
        session = self._session(cluster.metadata.uid or "", keys) if urls else EtcdSession()
        async with AsyncExitStack() as stack:
            tls = stack.enter_context(keys.tls())

            async def opened(endpoints: Sequence[str], *, known: bool) -> EtcdClient:
                options = _options(endpoints, tls, keys if known else EtcdCredentials())
                return await stack.enter_async_context(EtcdClient(options, session=session if known else None))

            yield GatewayEtcd(reachable(urls, keys), opened, keys)

    def _session(self, cluster: str, keys: EtcdCredentials) -> EtcdSession:
        """Returns the cluster's login; a changed password starts a new one."""
        password, session = self._sessions.get(cluster, ("", EtcdSession()))
        if password != keys.password:
            session = EtcdSession()
        self._sessions[cluster] = (keys.password, session)
        return session


def reachable(urls: Mapping[str, str], keys: EtcdCredentials) -> dict[str, str]:
    """Returns the URLs that the credentials can use: https needs a client certificate."""
    return {name: url for name, url in urls.items() if keys.client is not None or url.startswith("http://")}


def _options(endpoints: Sequence[str], tls: EtcdTls | None, who: EtcdCredentials) -> EtcdOptions:
    """Returns options without retries: the next reconcile asks a silent endpoint again."""
    return EtcdOptions(
        endpoints=tuple(endpoints),
        user=who.user,
        password=who.password,
        tls=tls,
        timeout=_TIMEOUT,
        connect_timeout=_TIMEOUT / 2,
        patience=0,
        max_answer_bytes=MAX_ANSWER_BYTES,
    )


class OpenClient(Protocol):
    """Opens a client of some members, with or without the password (`known`)."""

    async def __call__(self, endpoints: Sequence[str], *, known: bool) -> EtcdClient: ...


class GatewayEtcd:
    """The etcd of one cluster, over the client URLs of its members."""

    def __init__(self, urls: Mapping[str, str], open_client: OpenClient, keys: EtcdCredentials) -> None:
        self._urls = urls
        self._open = open_client
        self._keys = keys
        self._reports: Mapping[str, MemberReport] = {}
        self._is_stranger = False
        self._clients: dict[tuple[tuple[str, ...], bool], EtcdClient] = {}

    async def reports(self) -> Mapping[str, MemberReport]:
        """Asks without a login first: a login needs a quorum, and there may be none."""
        names = sorted(self._urls)
        said = await asyncio.gather(*(self._report(name) for name in names))
        self._reports = {name: report for name, report in zip(names, said, strict=True) if report is not None}
        return self._reports

    async def _at(self, *names: str, known: bool = True) -> EtcdClient:
        urls = tuple(self._urls[name] for name in names)
        if (urls, known) not in self._clients:
            self._clients[urls, known] = await self._open(urls, known=known)
        return self._clients[urls, known]

    async def _root(self) -> EtcdClient:
        """Returns a client that logs in at any member: a learner accepts a token but cannot issue one."""
        return await self._at(*sorted(self._urls))

    async def _any(self, *, known: bool = True) -> EtcdClient:
        """Returns a client of the voters that answer: a learner refuses, and a silent member would time out."""
        speak = [name for name, report in self._reports.items() if not report.learner]
        led = [name for name in speak if self._reports[name].leader]
        if not speak:
            raise EtcdUnavailableError("no member answers")
        return await self._at(*(led or speak), known=known)

    async def _report(self, name: str) -> MemberReport | None:
        try:
            status = await self._status(name)
        except EtcdAccessError:
            self._is_stranger = True
            return None
        except EtcdError:
            return None
        return MemberReport(
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

    async def _status(self, name: str) -> MemberStatus:
        try:
            return await (await self._at(name, known=False)).maintenance.status(self._urls[name])
        except EtcdAccessError:
            return await (await self._root()).maintenance.status(self._urls[name])

    async def auth(self) -> AuthState:
        if self._is_stranger and not (self._reports and self._keys.user):
            return "refused"
        if not self._keys.user or not any(report.leader for report in self._reports.values()):
            return ""
        try:
            return "on" if await (await self._any()).access.log_in() else "off"
        except EtcdAccessError:
            return "refused"
        except EtcdError:
            return ""

    async def members(self, *, agreed: bool) -> tuple[ObservedMember, ...] | None:
        try:
            if agreed and not self._confirms_members():
                return await self._members_before_3_5()
            return _seen(await (await self._any(known=agreed)).cluster.members(linearizable=agreed))
        except EtcdAccessError:
            self._is_stranger = True
            return None
        except EtcdError:
            return None

    async def _members_before_3_5(self) -> tuple[ObservedMember, ...]:
        """Returns the member list of a member right after a linearizable read there, for etcd before 3.5."""
        name = next(name for name, report in self._reports.items() if report.leader and not report.learner)
        client = await self._at(name)
        await client.kv.get(_NO_KEY)
        return _seen(await client.cluster.members(linearizable=False))

    def _confirms_members(self) -> bool:
        """Reports whether all members support a linearizable member list."""
        return all(
            EtcdVersion.of(report.version).confirms_members for report in self._reports.values() if report.version
        )

    async def alarms(self) -> tuple[tuple[int, Alarm], ...]:
        try:
            found = await (await self._any()).maintenance.alarms()
        except EtcdError:
            return ()
        return tuple((each.member_id, each.alarm) for each in found if each.alarm != "NONE")

    async def agreed_version(self) -> str:
        for name in self._reports:
            try:
                return (await (await self._at(name)).maintenance.versions(self._urls[name])).etcdcluster
            except EtcdError:
                continue
        return ""

    async def fingerprints(self, names: Sequence[str], revision: int) -> Mapping[str, KeyspaceHash]:
        said = await asyncio.gather(*(self._fingerprint(name, revision) for name in names))
        return {name: each for name, each in zip(names, said, strict=True) if each is not None}

    async def _fingerprint(self, name: str, revision: int) -> KeyspaceHash | None:
        try:
            async with asyncio.timeout(_HASH_SECONDS):
                said = await (await self._root()).maintenance.hash_kv(self._urls[name], revision=revision)
        except (EtcdError, TimeoutError):
            return None
        return KeyspaceHash(said.hash, said.compact_revision)

    async def add(self, peer_url: str, *, learner: bool) -> None:
        await (await self._any()).cluster.add([peer_url], learner=learner)

    async def promote(self, member: int) -> None:
        await (await self._any()).cluster.promote(member)

    async def remove(self, member: int) -> None:
        await (await self._any()).cluster.remove(member)

    async def update(self, member: int, peer_url: str) -> None:
        await (await self._any()).cluster.update(member, [peer_url])

    async def move_leader(self, leader: str, to: int) -> None:
        await (await self._root()).maintenance.move_leader(self._urls[leader], to=to)

    async def compact(self, revision: int) -> None:
        await (await self._any()).kv.compact(revision, physical=True)

    async def defragment(self, name: str) -> None:
        await (await self._root()).maintenance.defragment(self._urls[name])

    async def disarm(self, member: int, alarm: Alarm) -> None:
        await (await self._any()).maintenance.disarm(AlarmMember(member_id=member, alarm=alarm))

    async def ask_who(self) -> None:
        """Is idempotent: it accepts a user and a role that already exist."""
        access = (await self._any(known=False)).access
        user, password = self._keys.user, self._keys.password
        try:
            await access.add_user(user, password)
        except EtcdRefusedError as error:
            _refuse_others(error)
            await access.set_password(user, password)
        try:
            await access.add_role(user)
        except EtcdRefusedError as error:
            _refuse_others(error)
        await access.give_role(user, user)
        await access.enable()


def _refuse_others(error: EtcdRefusedError) -> None:
    if _IS_THERE not in str(error):
        raise error


def _seen(members: Sequence[Member]) -> tuple[ObservedMember, ...]:
    found = (
        ObservedMember(
            id=each.id,
            name=pod_name_of(each.peer_urls),
            learner=each.is_learner,
            started=bool(each.name),
            peer_url=next(iter(each.peer_urls), ""),
        )
        for each in members
    )
    return tuple(sorted(found, key=lambda member: member.name))
