"""etcd's own alarms."""

from __future__ import annotations

from typing import Final

from etcd_operator.kinds import EtcdCluster
from etcd_operator.observation import Observation, Voice
from etcd_operator.planning.comparing import differing
from etcd_operator.planning.plan import Plan, stuck
from etcd_operator.planning.rolling import is_outdated
from etcd_operator.steps import Compact, Defragment, Disarm, RemoveMember

__all__ = ["corrupt", "no_space"]

_DEFAULT_QUOTA: Final = 2 * 1024**3
_QUOTA: Final = "ETCD_QUOTA_BACKEND_BYTES"
_ROOM: Final = 0.9
_WORTH_IT: Final = 0.05
"""Of the quota: so much has to be won for it to be worth stopping a member for a while."""
_AGAIN: Final = 10.0
"""Space is known to be free a while after the past is forgotten."""


def corrupt(cluster: EtcdCluster, seen: Observation) -> Plan | None:
    """A member with other data than the rest is replaced; but not on the word of one that may be wrong itself."""
    if not seen.accused:
        return None
    gone = sorted(seen.accused - {member.id for member in seen.members} - {0})
    if gone:
        return Plan("Alarmed", "the corrupt member is gone", Disarm(gone[0], "CORRUPT"))
    if not seen.is_clear_who_is_corrupt:
        return _unclear(seen)
    member = next(each for each in seen.members if each.id in seen.accused)
    return Plan("Alarmed", f"{member.name} has other data than the rest: it is replaced", RemoveMember(member))


def _unclear(seen: Observation) -> Plan | None:
    """Hashes of all voters can tell: who differs from most is replaced, and nobody is accused if all are alike."""
    revisions = {voice.revision for voice in seen.voices.values()}
    if len(seen.fingerprints) == len(seen.voters) and len({*seen.fingerprints.values()}) == len(revisions) == 1:
        return Plan("Alarmed", "all members hold the same data again", Disarm(min(seen.accused), "CORRUPT"))
    if differing(seen.fingerprints, len(seen.voters)):
        return None
    named = ", ".join(member.name for member in seen.members if member.id in seen.accused) or "nobody by name"
    words = f"etcd says that members hold different data, and accuses {named}: most of them would have to be believed"
    return stuck("Alarmed", f"{words} to say who is wrong; restore a backup")


def no_space(cluster: EtcdCluster, seen: Observation) -> Plan | None:
    """Forget the past, give its space back one by one, the leader last, and take the alarm back if that was enough.

    A larger quota is rolled out first. Before 3.4 a member does not say how much it uses: then the past is forgotten
    each time before space is given back.
    """
    full = [number for number, alarm in seen.alarms if alarm == "NOSPACE"]
    if not full:
        return None
    quota = _quota(cluster)
    sizes = {name: voice for name, voice in seen.voices.items() if name in seen.names}
    if all(_has_room(voice, quota) for voice in sizes.values()):
        old = any(is_outdated(cluster, pod) for pod in seen.pods.values())
        return None if old else Plan("Alarmed", "there is room again", Disarm(full[0], "NOSPACE"))
    wasteful = [name for name, voice in sizes.items() if _is_wasteful(voice, quota)]
    if wasteful:
        return _given_back(seen, wasteful)
    revision = max(voice.revision for voice in sizes.values())
    words = "no space is left: the past is forgotten; if that is not enough, raise spec.options.quotaBackendBytes"
    return Plan("Alarmed", words, Compact(revision), after=_AGAIN)


def _quota(cluster: EtcdCluster) -> int:
    """As it is set, in options or in etcd's own way."""
    options = cluster.spec.options.quota_backend_bytes if cluster.spec.options else None
    given = {each.name: each.value or "" for each in (cluster.spec.pod.etcd_env if cluster.spec.pod else ())}
    variable = given.get(_QUOTA, "")
    return options or (int(variable) if variable.isdecimal() else 0) or _DEFAULT_QUOTA


def _is_wasteful(voice: Voice, quota: int) -> bool:
    won = voice.size - voice.in_use
    return voice.in_use < _ROOM * quota <= voice.size and won >= _WORTH_IT * quota


def _has_room(voice: Voice, quota: int) -> bool:
    return voice.size < _ROOM * quota or (voice.in_use < _ROOM * quota and not _is_wasteful(voice, quota))


def _given_back(seen: Observation, wasteful: list[str]) -> Plan:
    leader = seen.leader
    name = min(wasteful, key=lambda each: (leader is not None and leader.name == each, each))
    is_known = seen.voices[name].in_use > 0
    step = Defragment(name, forget=0 if is_known else seen.voices[name].revision)
    words = f"{name} has no space left: what it does not use is given back"
    return Plan("Alarmed", words, step, after=0.0 if is_known else _AGAIN)
