"""A model of etcd's membership: who belongs to it, who runs, what it refuses, and what must never be done to it.

Somebody writes all the time: what a quorum has acknowledged is with whoever leads, or the test fails.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace

from etcd_operator.manifests import pod_name_of
from etcd_operator.manifests.pods import CLUSTER, FORCE, STATE, VERSION
from etcd_operator.observation import Alarm, AuthState, KeyspaceHash, MemberReport, ObservedMember, quorum
from navarch.errors import EtcdNotFoundError, EtcdRefusedError, EtcdUnavailableError
from navarch.k8s.core.v1 import Pod

CLUSTER_ID = 0xE7CD
CONNECTED = 2.0
CAUGHT_UP = 1.0
ALONE = 5.0


class StartError(Exception):
    """etcd ends, with these last words."""


@dataclass
class Process:
    """An etcd that runs. It answers once it has been part of a quorum."""

    member: int
    version: str
    since: float
    listens: frozenset[str]
    """The schemes in which others reach it."""
    has_certificate: bool
    answers: bool = False
    hangs: bool = False
    """It does nothing, and does not end."""


@dataclass
class ModelEtcd:
    """One cluster. `now` is asked for the time; `wrote` is told of each change."""

    now: Callable[[], float]
    wrote: Callable[[str], None]
    members: dict[int, ObservedMember] = field(default_factory=dict)
    disks: dict[str, int] = field(default_factory=dict)
    """What each disk belongs to: the id of a member."""
    processes: dict[str, Process] = field(default_factory=dict)
    alarmed: list[tuple[int, Alarm]] = field(default_factory=list)
    log: dict[int, int] = field(default_factory=dict)
    """The last write that each member has."""
    acknowledged: int = 0
    chance: random.Random = field(default_factory=lambda: random.Random(1))
    """Says which members are the fast ones."""
    reachable: bool = True
    """Whether the operator can reach anybody."""
    failing: dict[str, int] = field(default_factory=dict)
    """How often each disk is still going to fail."""
    differ: set[int] = field(default_factory=set)
    """Members that hold other data than the rest, and do not say so."""
    size_asked_for: int = 0
    goes: Callable[[str], bool] = lambda name: False
    """Whether a member's pod is ending, and takes its data with it."""
    awaits_quorum: bool = True
    """Whether it answers only after it was part of a quorum, as before 3.5.2, or after a while in any case."""
    asks_who: bool = False
    """Whether it is asked for that it has users."""
    knows_root: bool = False
    formed: bool = False
    led_by: int = 0
    _next: int = 1

    # What happens to it

    def start(self, pod: Pod, disk: str) -> None:
        """A container starts; raises `StartError`, or AssertionError for what must never be."""
        notes = pod.annotations
        bracketed = any("[$(POD_IP)]" in flag for flag in pod.spec.containers[0].command or [])
        if bracketed != (":" in (pod.status.pod_ip or "")):
            raise StartError('{"level":"fatal","msg":"error verifying flags, too many colons in address"}')
        if self.failing.get(disk, 0):
            self.failing[disk] -= 1
            raise StartError('{"level":"fatal","msg":"failed to open WAL","error":"read: input/output error"}')
        if disk in self.disks:
            self._return(pod, self.disks[disk], forced=notes[FORCE] == "true")
        elif notes[STATE] == "new":
            self._seed(pod, disk)
        else:
            self._join(pod, disk, dict(each.split("=", 1) for each in notes[CLUSTER].split(",")))
        self.elect()

    def _return(self, pod: Pod, member: int, *, forced: bool) -> None:
        if forced:
            assert self.running_voters < quorum(len(self.voters)), "a cluster with a quorum was cut down to one member"
            if len(self.members) > 1:
                self.is_lost_for_good("a member was made a cluster of its own")
            self.members = {member: replace(self.members[member], learner=False)}
            self.acknowledged = self.log[member]
        if member not in self.members:
            raise StartError('{"level":"fatal","msg":"the member has been permanently removed from the cluster"}')
        self._runs(pod, member)

    def _seed(self, pod: Pod, disk: str) -> None:
        assert not self.formed, f"{pod.name} was started as a new cluster, although there is one"
        self.formed = True
        member = self._new(pod.annotations[CLUSTER].partition("=")[2], learner=False, started=True)
        self.disks[disk] = member
        self._runs(pod, member)

    def _join(self, pod: Pod, disk: str, peers: Mapping[str, str]) -> None:
        if set(peers) == {pod.name} or not any(name in self.processes for name in peers):
            raise StartError(
                '{"level":"fatal","msg":"discovery failed","error":"cannot fetch cluster info from peer urls"}'
            )
        member = next((each for each in self.members.values() if each.name == pod.name), None)
        if member is None or set(peers) != {each.name for each in self.members.values()}:
            raise StartError('{"level":"fatal","msg":"discovery failed","error":"member count is unequal"}')
        assert not member.started or member.learner, f"{pod.name} had promised things, and was started without its data"
        assert peers == {each.name: each.peer_url for each in self.members.values()}, f"{pod.name} knows other ways"
        self.members[member.id] = replace(member, started=True)
        self.disks[disk] = member.id
        self._runs(pod, member.id)

    def _runs(self, pod: Pod, member: int) -> None:
        flags = dict(each.partition("=")[::2] for each in pod.spec.containers[0].command or [])
        listens = frozenset(url.partition(":")[0] for url in flags["--listen-peer-urls"].split(","))
        certificate = "--peer-cert-file" in flags
        self.processes[pod.name] = Process(member, pod.annotations[VERSION], self.now(), listens, certificate)
        self.check_ways()

    def check_ways(self) -> None:
        """Whoever runs is where the others look for it, and they can go there."""
        for process in self.processes.values():
            if process.member in self.members:
                scheme = self.members[process.member].peer_url.partition(":")[0]
                name = self.members[process.member].name
                assert scheme in process.listens, f"{name} is looked for by {scheme}, and listens to {process.listens}"
                able = all(each.has_certificate for each in self.processes.values())
                assert scheme == "http" or able, f"{name} is reached by {scheme}, and some have no certificate"

    def restored(self, peer_url: str) -> int:
        """A member whose disk holds what a snapshot had; from now on there is a cluster."""
        self.formed, self.acknowledged = True, 0
        return self._new(peer_url, learner=False, started=True)

    def stop(self, name: str) -> None:
        """A container ends."""
        self.processes.pop(name, None)
        self.elect()

    def elect(self) -> None:
        """Somebody leads, if there is a quorum."""
        able = [each.member for each in self.processes.values() if self._votes(each.member) and not each.hangs]
        if len(able) < quorum(len(self.voters)) or not able:
            self.led_by = 0
            return
        if self.led_by not in able:
            self.led_by = min(each for each in able if self._is_elected_by(able, each))
            assert self.log[self.led_by] >= self.acknowledged, f"{self.led_by} leads, and lacks what was acknowledged"
        for process in self.processes.values():
            process.answers = process.answers or process.member in self.members

    def _is_elected_by(self, able: Sequence[int], candidate: int) -> bool:
        """Whether those that have no more than it are a quorum."""
        return sum(self.log[each] <= self.log[candidate] for each in able) >= quorum(len(self.voters))

    def write(self) -> None:
        """Somebody writes, and is told that it is written when a quorum has it. The others get it with the next one."""
        if not self.led_by:
            return
        running = {each.member for each in self.processes.values() if each.member in self.members and not each.hangs}
        others = sorted(each for each in running if self._votes(each) and each != self.led_by)
        fast = {self.led_by, *self.chance.sample(others, quorum(len(self.voters)) - 1)}
        for member in running:
            self.log[member] = self.acknowledged + (member in fast)
        self.acknowledged += 1

    @property
    def intact(self) -> list[ObservedMember]:
        """Voters whose data is there, whether they run or not."""
        return [member for member in self.voters if member.id in self.disks.values() or not member.started]

    def is_lost_for_good(self, what: str) -> None:
        """Fails the test if enough members have their data."""
        assert len(self.intact) < quorum(len(self.voters)), f"{what}, although {self.intact} have their data"

    @property
    def voters(self) -> list[ObservedMember]:
        """Those who decide."""
        return [member for member in self.members.values() if not member.learner]

    @property
    def running_voters(self) -> int:
        """How many of them run."""
        return len([each for each in self.processes.values() if self._votes(each.member) and not each.hangs])

    def _votes(self, member: int) -> bool:
        return member in self.members and not self.members[member].learner

    def _new(self, peer_url: str, *, learner: bool, started: bool) -> int:
        number, self._next = self._next, self._next + 1
        self.members[number] = ObservedMember(
            id=number, name=pod_name_of([peer_url]), learner=learner, started=started, peer_url=peer_url
        )
        self.log[number] = 0
        return number

    # What the operator asks

    async def reports(self) -> Mapping[str, MemberReport]:
        return {
            name: MemberReport(
                member=process.member,
                cluster=CLUSTER_ID,
                version=process.version,
                leader=self.led_by if process.member in self.members else 0,
                learner=process.member in self.members and self.members[process.member].learner,
                index=self.log[process.member],
                revision=1,
            )
            for name, process in self.processes.items()
            if self._answers(process) and self.reachable and not process.hangs
        }

    def _answers(self, process: Process) -> bool:
        return process.answers or (not self.awaits_quorum and self.now() - process.since >= ALONE)

    async def members_seen(self, *, agreed: bool) -> tuple[ObservedMember, ...] | None:
        if (agreed and not self.led_by) or not self.reachable:
            return None
        return tuple(self.members.values())

    async def alarms(self) -> tuple[tuple[int, Alarm], ...]:
        return tuple(self.alarmed)

    async def agreed_version(self) -> str:
        return min((each.version for each in self.processes.values()), default="")

    async def fingerprints(self, names: Sequence[str], revision: int) -> Mapping[str, KeyspaceHash]:
        members = {name: self.processes[name].member for name in names if name in self.processes}
        return {
            name: KeyspaceHash(number if number in self.differ else 0, revision) for name, number in members.items()
        }

    async def add(self, peer_url: str, *, learner: bool) -> None:
        self._need_quorum()
        running = {each.member: each for each in self.processes.values()}
        for member in self.voters:
            process = running.get(member.id)
            if process is None or process.hangs or (len(self.voters) > 1 and self.now() - process.since < CONNECTED):
                raise EtcdUnavailableError("etcdserver: unhealthy cluster")
        if learner and any(member.learner for member in self.members.values()):
            raise EtcdRefusedError("etcdserver: too many learner members in cluster")
        name = pod_name_of([peer_url])
        assert all(member.name != name for member in self.members.values()), f"{name} was added twice"
        self._new(peer_url, learner=learner, started=False)
        self.elect()
        self.wrote(f"add {name}")

    async def promote(self, member: int) -> None:
        self._need_quorum()
        process = next((each for each in self.processes.values() if each.member == member), None)
        if process is None or process.hangs or self.now() - process.since < CAUGHT_UP:
            raise EtcdRefusedError("etcdserver: can only promote a learner member which is in sync with leader")
        old = self.members[member]
        assert old.learner, f"{old.name} was promoted twice"
        self.members[member] = replace(old, learner=False)
        self.elect()
        self.wrote(f"promote {old.name}")

    async def remove(self, member: int) -> None:
        self._need_quorum()
        if member not in self.members:
            raise EtcdNotFoundError("etcdserver: member not found")
        gone = self.members[member]
        self._check_removal(gone)
        del self.members[member]
        self.alarmed = [each for each in self.alarmed if each[0] != member]
        self.elect()
        assert self.led_by, f"removing {gone.name} has cost the quorum"
        self.wrote(f"remove {gone.name}")

    def _check_removal(self, gone: ObservedMember) -> None:
        runs = any(each.member == gone.id and not each.hangs for each in self.processes.values())
        corrupt = (gone.id, "CORRUPT") in self.alarmed or gone.id in self.differ
        if runs and not gone.learner and not corrupt and not self.goes(gone.name):
            assert len(self.voters) > self.size_asked_for, f"{gone.name} votes and runs, and was removed"
            assert gone.id != self.led_by, f"{gone.name} leads, and was removed"

    async def update(self, member: int, peer_url: str) -> None:
        self._need_quorum()
        self.members[member] = replace(self.members[member], peer_url=peer_url)
        self.check_ways()
        self.wrote(f"update {self.members[member].name}")

    async def auth(self) -> AuthState:
        if not self.asks_who or not self.led_by or not self.reachable:
            return ""
        return "on" if self.knows_root else "off"

    async def ask_who(self) -> None:
        self._need_quorum()
        assert not self.knows_root, "users were switched on twice"
        self.knows_root = True
        self.wrote("enable users")

    async def move_leader(self, leader: str, to: int) -> None:
        self._need_quorum()
        assert self.members[self.led_by].name == leader, f"{leader} does not lead"
        self.led_by = to
        self.wrote(f"move leadership from {leader}")

    async def compact(self, revision: int) -> None:
        self.wrote("compact")

    async def defragment(self, name: str) -> None:
        self.wrote(f"defragment {name}")

    async def disarm(self, member: int, alarm: Alarm) -> None:
        self.alarmed.remove((member, alarm))
        self.wrote(f"disarm {alarm}")

    def _need_quorum(self) -> None:
        if not self.led_by or not self.reachable:
            raise EtcdUnavailableError("etcdserver: no leader")


class Asked:
    """The model as the operator asks it, which knows the addresses of some pods."""

    def __init__(self, model: ModelEtcd, known: Container[str]) -> None:
        self._model = model
        self._known = known
        self.alarms, self.fingerprints = model.alarms, model.fingerprints
        self.agreed_version = model.agreed_version
        self.add, self.promote, self.remove, self.move_leader = (
            model.add,
            model.promote,
            model.remove,
            model.move_leader,
        )
        self.compact, self.defragment, self.disarm = model.compact, model.defragment, model.disarm
        self.update, self.auth, self.ask_who = model.update, model.auth, model.ask_who

    async def reports(self) -> Mapping[str, MemberReport]:
        return {name: report for name, report in (await self._model.reports()).items() if name in self._known}

    async def members(self, *, agreed: bool) -> tuple[ObservedMember, ...] | None:
        return await self._model.members_seen(agreed=agreed)
