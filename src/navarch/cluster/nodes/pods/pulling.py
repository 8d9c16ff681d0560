"""Images as containers wait for them."""

from __future__ import annotations

import asyncio
from functools import partial

from navarch._base.backoff import Delays
from navarch._base.tasks import unless
from navarch.cluster.nodes.images import Image
from navarch.cluster.nodes.pods.home import Home
from navarch.cluster.nodes.pods.records import Record
from navarch.errors import ContainerError

__all__ = ["until_pulled"]

_SHOWN_SECONDS = 1.0
"""How long the fault itself is shown before the wait is."""


async def until_pulled(home: Home, record: Record, stop: asyncio.Event) -> Image | None:
    """The image of a container, once this machine has it; None if `stop` comes first."""
    site, delays = home.site, Delays(home.site.delays.pull, home.site.client.rng)
    while not stop.is_set():
        name = record.spec.image or ""
        try:
            found = site.images.find(name)
        except ContainerError as error:
            delay = delays.next_delay()
            _tell(home, record, name, error)
            await unless(stop.wait(), site.clock.sleep(min(_SHOWN_SECONDS, delay / 2)))
            _tell_wait(home, record, name, error)
            await unless(stop.wait(), site.clock.sleep(delay))
        else:
            note = f'Container image "{name}" already present on machine and can be accessed by the pod'
            home.say("Pulled", note, container=record.spec.name)
            return found
    return None


def _tell_wait(home: Home, record: Record, name: str, error: ContainerError) -> None:
    if record.spec.image_pull_policy != "Never":
        say = partial(home.say, container=record.spec.name)
        say("BackOff", f'Back-off pulling image "{name}"')
        say("Failed", "Error: ImagePullBackOff", "Warning")
        record.waits("ImagePullBackOff", f'Back-off pulling image "{name}": ErrImagePull: {error}')


def _tell(home: Home, record: Record, name: str, error: ContainerError) -> None:
    say = partial(home.say, container=record.spec.name)
    if record.spec.image_pull_policy == "Never":
        note = f'Container image "{name}" is not present with pull policy of Never'
        say("ErrImageNeverPull", note, "Warning")
        say("Failed", "Error: ErrImageNeverPull", "Warning")
        record.waits("ErrImageNeverPull", note)
        return
    say("Pulling", f'Pulling image "{name}"')
    say("Failed", f'Failed to pull image "{name}": {error}', "Warning")
    say("Failed", "Error: ErrImagePull", "Warning")
    record.waits("ErrImagePull", str(error))
