"""`Life` and `Stage`: the declared life of a simulated pod."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Annotated, Final, Literal

import msgspec

from navarch._base.backoff import Backoff
from navarch.api import Labels

LIFE: Final = "navarch.dev/life"
"""The annotation with the life of one pod, a `Life` in JSON."""

Becomes = Literal["waiting", "running", "ready", "unready", "exited", "failed"]
Seconds = Annotated[float, msgspec.Meta(ge=0)]


class Stage(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What the containers of a pod become, so many seconds `after` the stage before, and up to `jitter` more.

    What has `exited` is started again by the pod's restart policy, and walks through all stages anew; a pod that has
    `failed` did so as a whole, as with an eviction. `reason` and `message` say why it waits, exited or failed.
    `conditions` are set beside those that every pod has.

    >>> crash = (Stage(becomes="ready", after=1), Stage(becomes="exited", after=60, exit_code=3))
    """

    becomes: Becomes = "ready"
    after: Seconds = 0.0
    jitter: Seconds = 0.0
    exit_code: int = 0
    reason: str = ""
    message: str = ""
    conditions: dict[str, str] = {}


class Life(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The stages that pods go through, which are those with these `labels`, on `nodes` with such names (all by default).

    A pod that is to go takes `stopping` seconds for it, and is killed if it was not given as much. One that crashes again
    and again waits longer and longer: `backoff` seconds before its second restart, twice as long before the next, and
    so on, up to 30 times as long.
    """

    stages: tuple[Stage, ...] = (Stage(),)
    stopping: Seconds = 0.0
    backoff: float = 10.0
    labels: str = ""
    nodes: tuple[str, ...] = ("*",)

    def __post_init__(self) -> None:
        Labels(self.labels)
        self.delays()

    def is_for(self, labels: Mapping[str, str], node: str) -> bool:
        """Returns whether a pod with these labels on that node has this life."""
        return Labels(self.labels).matches(labels) and any(fnmatchcase(node, each) for each in self.nodes)

    def delays(self) -> Backoff:
        """Returns the backoff of a container that crashes."""
        return Backoff(initial=self.backoff, maximum=30 * self.backoff, jitter=0.0)


_ANY: Final = Life()
_decoder: Final = msgspec.json.Decoder(Life)


def life_of(annotations: Mapping[str, str], labels: Mapping[str, str], node: str, lives: Sequence[Life]) -> Life:
    """Returns the life in the pod's annotation, else the first of `lives` that matches; else a life that is ready at
    once.
    """
    said = annotations.get(LIFE)
    if said is None:
        return next((life for life in lives if life.is_for(labels, node)), _ANY)
    try:
        return _decoder.decode(said)
    except msgspec.DecodeError as error:
        return _unfit(f"expected stages of life in the annotation {LIFE}: {error}")


def _unfit(message: str) -> Life:
    """Returns a life that waits for ever, with the reason."""
    return Life(stages=(Stage(becomes="waiting", reason="CreateContainerConfigError", message=message),))
