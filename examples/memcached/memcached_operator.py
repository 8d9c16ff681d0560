"""A whole operator: a Memcached asks for a number of pods, and gets them as a Deployment.

python -m memcached_operator        # on the cluster that kubectl talks to
"""

from typing import Annotated

from navarch import Context, Meta, ObjectMeta, Operator, Resource, Spec, Status
from navarch.k8s.apps.v1 import Deployment, DeploymentSpec
from navarch.k8s.core.v1 import Container, ContainerPort, Pod, PodSpec, PodTemplateSpec, Probe, TCPSocketAction
from navarch.k8s.meta.v1 import LabelSelector


class MemcachedSpec(Spec):
    size: Annotated[int, Meta(ge=0, le=64)] = 1
    """How many memcached pods to run."""


class MemcachedStatus(Status):  # observedGeneration and conditions come with it
    nodes: list[str] = []
    """Names of the memcached pods."""


class Memcached(
    Resource[MemcachedSpec, MemcachedStatus],
    group="cache.example.com",
    version="v1alpha1",
    short_names=("mc",),
):
    """A set of memcached pods."""


operator = Operator("memcached-operator")


@operator.controller(Memcached, owns=(Deployment,), reads=(Pod,))
async def reconcile(memcached: Memcached, ctx: Context) -> None:
    await ctx.apply(deployment(memcached))  # server-side apply, owned, no-op if equal
    pods = await ctx.list(Pod, labels=selector(memcached))  # from the cache
    memcached.status.nodes = sorted(pod.name for pod in pods)  # written once, at the end, if it changed


@reconcile.cleanup  # only now is there a finalizer
async def farewell(memcached: Memcached, ctx: Context) -> None: ...


def selector(memcached: Memcached) -> dict[str, str]:
    """The labels of the pods of one Memcached, and of no other."""
    return {"app": "memcached", "memcached": memcached.name}


def deployment(memcached: Memcached) -> Deployment:
    """What a Memcached asks for. Its namespace and its owner are set by `ctx.apply`."""
    labels = selector(memcached)
    container = Container(
        name="memcached",
        image="memcached:1.6-alpine",
        ports=[ContainerPort(container_port=11211)],
        readiness_probe=Probe(tcp_socket=TCPSocketAction(port=11211), period_seconds=1),
    )
    return Deployment(
        name=memcached.name,
        labels=labels,
        spec=DeploymentSpec(
            replicas=memcached.spec.size,
            selector=LabelSelector(match_labels=labels),
            template=PodTemplateSpec(metadata=ObjectMeta(labels=labels), spec=PodSpec(containers=[container])),
        ),
    )


if __name__ == "__main__":
    operator.run()
