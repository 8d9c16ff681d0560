"""Waits until a deployed operator works.

It works when all replicas of this generation are ready, one of them holds the Lease, and its webhooks answer. A replica is
ready when `/readyz` says so, which is when all watches have been listed; CRDs are served before anything else is applied.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from navarch.api import Kind
from navarch.client import Client
from navarch.errors import DeployError, NotFound
from navarch.project.deploy.diagnosis import DEPLOYMENTS, Fault, current_pods, diagnose
from navarch.project.deploy.release import Release
from navarch.project.deploy.webhook_probe import webhook_obstacle

__all__ = ["LEASES", "Readiness", "until_ready"]

LEASES: Final = Kind("coordination.k8s.io", "v1", "Lease", plural="leases")
_PAUSE_SECONDS: Final = 0.5
_DIAGNOSIS_SECONDS: Final = 3.0
_PERSISTENT_SECONDS: Final = 30.0
_HOPELESS: Final = frozenset({"image", "permissions", "crash", "quota", "pod security"})
"""Causes that seldom go away by themselves: they end the wait when they have lasted for half a minute."""
_HOST_NAME: Final = 63


@dataclass(slots=True)
class Readiness:
    """Asks whether the operator works; remembers what it has seen of the Lease."""

    client: Client
    release: Release
    _renewals: str = ""

    async def obstacle(self) -> str:
        """Returns what is still missing; empty if the operator works."""
        return await self._rollout() or await self._election() or await webhook_obstacle(self.client, self.release)

    async def _rollout(self) -> str:
        release = self.release
        try:
            found = await self.client.get(DEPLOYMENTS, release.deployment, namespace=release.namespace)
        except NotFound:
            return f"Deployment {release.deployment} does not exist"
        status, wanted = found.get("status") or {}, found["spec"].get("replicas", 1)
        if status.get("observedGeneration", 0) < found.metadata["generation"]:
            return "the Deployment has not been seen yet"
        updated, ready = status.get("updatedReplicas", 0), status.get("availableReplicas", 0)
        if updated < wanted or ready < wanted:
            return f"{min(updated, ready)} of {wanted} replicas are ready"
        if status.get("replicas", 0) > updated:
            return f"{status['replicas'] - updated} replicas of the former revision are still there"
        return ""

    async def _election(self) -> str:
        """A holder that is one of the pods leads; another identity leads if it is seen to renew the Lease."""
        if not self.release.lease:
            return ""
        name, namespace = self.release.lease, self.release.lease_namespace
        try:
            lease = await self.client.get(LEASES, name, namespace=namespace)
        except NotFound:
            return f"no replica has taken the Lease {namespace}/{name} yet"
        holder = lease["spec"].get("holderIdentity") or ""
        if not holder:
            return f"the Lease {namespace}/{name} has no holder"
        pods = {each.name[:_HOST_NAME] for each in await current_pods(self.client, self.release)}
        renewed, before = str(lease["spec"].get("renewTime")), self._renewals
        self._renewals = f"{holder} {renewed}"
        if holder.rpartition("_")[0] in pods or (before.startswith(f"{holder} ") and before != self._renewals):
            return ""
        return f"the Lease {namespace}/{name} is held by {holder}, which is none of the pods"


async def until_ready(
    client: Client, release: Release, seconds: float, say: Callable[[str], None] = lambda _: None
) -> None:
    """Returns when the operator works. Raises `DeployError` with the causes after `seconds`, or earlier if they last."""
    clock, readiness = client.clock, Readiness(client, release)
    began = clock.monotonic()
    diagnosed, since = began, dict[str, float]()
    while obstacle := await readiness.obstacle():
        now = clock.monotonic()
        faults: list[Fault] = []
        if now - diagnosed >= _DIAGNOSIS_SECONDS or now - began >= seconds:
            diagnosed = now
            faults = await diagnose(client, release)
            since = {each.cause: since.get(each.cause, now) for each in faults}
        is_hopeless = any(now - first >= _PERSISTENT_SECONDS for cause, first in since.items() if cause in _HOPELESS)
        if now - began >= seconds or (is_hopeless and faults):
            raise DeployError(failure(release, obstacle, faults, now - began))
        say(f"waiting: {obstacle}" + (f" ({faults[0].cause}: {faults[0].detail})" if faults else ""))
        await clock.sleep(min(_PAUSE_SECONDS, max(began + seconds - now, 0.0)))


def failure(release: Release, obstacle: str, faults: list[Fault], seconds: float) -> str:
    """Returns the report of an operator that does not work."""
    causes = "".join(f"\n{each}" for each in faults) or (
        "\nno cause was found; look at the pods: "
        f"kubectl describe pods -n {release.namespace} -l control-plane=controller-manager"
    )
    return f"{release.project}: expected the operator to work within {seconds:.0f} s, but {obstacle}{causes}"
