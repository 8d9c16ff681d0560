"""`Plan`: the next step, or why there is none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from etcd_operator.steps import Step

__all__ = ["Plan", "Reason", "done", "stuck", "wait"]

Reason = Literal[
    "AccessRefused",
    "Alarmed",
    "Asleep",
    "Diverged",
    "Forming",
    "Growing",
    "Healing",
    "IdentityMismatch",
    "Joining",
    "Paused",
    "QuorumLost",
    "Ready",
    "Recovering",
    "RollingOut",
    "RolloutFailed",
    "RolloutRefused",
    "ScalingDown",
    "ScalingUp",
    "SecretsWrong",
    "Securing",
    "TidyingUp",
    "Unreachable",
    "Unsupported",
    "WakingUp",
]

_SOON: Final = 0.3
_SELDOM: Final = 30.0


@dataclass(frozen=True, slots=True)
class Plan:
    """One step, or none, and the reason in words. Looked at again after so many seconds, or when something changes.

    `stuck` if nothing will change unless somebody does something about it: the words say what.
    """

    reason: Reason
    words: str
    step: Step | None = None
    after: float = 0.0
    stuck: bool = False


def wait(reason: Reason, words: str, *, after: float = _SOON) -> Plan:
    """Nothing can be done before something else has happened."""
    return Plan(reason, words, after=after)


def stuck(reason: Reason, words: str) -> Plan:
    """Somebody has to do something."""
    return Plan(reason, words, after=_SELDOM, stuck=True)


def done(reason: Reason, words: str) -> Plan:
    """Nothing is left to do."""
    return Plan(reason, words, after=_SELDOM)
