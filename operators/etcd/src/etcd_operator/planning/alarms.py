"""etcd's own alarms."""

from __future__ import annotations

from typing import Final

from etcd_operator.kinds import EtcdCluster
from etcd_operator.observation import Observation
from etcd_operator.planning.plan import Plan, stuck
from etcd_operator.steps import Compact, Defragment, Disarm, RemoveMember

__all__ = ["corrupt", "no_space"]

_DEFAULT_QUOTA: Final = 2 * 1024**3
_ROOM: Final = 0.9
_AGAIN: Final = 10.0
"""Space is known to be free a while after the past is forgotten."""


def corrupt(cluster: EtcdCluster, seen: Observation) -> Plan | None:
    """A member with other data than the rest is replaced."""
    for number, alarm in seen.alarms:
        if alarm != "CORRUPT":
            continue
        member = next((each for each in seen.members if each.id == number), None)
        if member is None:
            return Plan("Alarmed", "the corrupt member is gone", Disarm(number, "CORRUPT"))
        if not seen.is_whole_without(member):
            return stuck(
                "Alarmed", f"{member.name} has other data than the rest, and cannot be spared; restore a backup"
            )
        return Plan("Alarmed", f"{member.name} has other data than the rest: it is replaced", RemoveMember(member))
    return None


def no_space(cluster: EtcdCluster, seen: Observation) -> Plan | None:
    """Forget the past, give its space back one by one, the leader last, and take the alarm back if that was enough.

    Before 3.4 a member does not say how much it uses: then the past is forgotten each time before space is given back.
    """
    full = [number for number, alarm in seen.alarms if alarm == "NOSPACE"]
    if not full:
        return None
    quota = (cluster.spec.options.quota_backend_bytes if cluster.spec.options else None) or _DEFAULT_QUOTA
    sizes = {name: voice for name, voice in seen.voices.items() if name in seen.names}
    if all(voice.size < _ROOM * quota for voice in sizes.values()):
        return Plan("Alarmed", "there is room again", Disarm(full[0], "NOSPACE"))
    wasteful = [name for name, voice in sizes.items() if voice.in_use < _ROOM * quota <= voice.size]
    if wasteful:
        leader = seen.leader
        name = min(wasteful, key=lambda each: (leader is not None and leader.name == each, each))
        step = Defragment(name, forget=0 if sizes[name].in_use else sizes[name].revision)
        return Plan("Alarmed", f"{name} has no space left: what it does not use is given back", step)
    revision = max(voice.revision for voice in sizes.values())
    words = "no space is left: the past is forgotten; if that is not enough, raise spec.options.quotaBackendBytes"
    return Plan("Alarmed", words, Compact(revision), after=_AGAIN)
