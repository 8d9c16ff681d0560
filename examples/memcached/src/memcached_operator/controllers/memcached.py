"""Reconciles Memcached: a Deployment with as many pods as it asks for."""

from navarch import Context, ObjectMeta, Uses
from navarch.k8s.apps.v1 import Deployment, DeploymentSpec
from navarch.k8s.core.v1 import Container, ContainerPort, Pod, PodSpec, PodTemplateSpec, Probe, TCPSocketAction
from navarch.k8s.meta.v1 import LabelSelector

from memcached_operator import operator
from memcached_operator.api.cache.v1alpha1.memcached import Memcached

operator.uses += (Uses(Deployment, ("create", "get", "list", "patch", "watch")),)  # the garbage collector deletes them


@operator.controller(Memcached, owns=(Deployment,), reads=(Pod,))
async def reconcile(memcached: Memcached, ctx: Context) -> None:
    await ctx.apply(deployment(memcached))  # server-side apply, owned, no-op if equal
    pods = await ctx.list(Pod, labels=selector(memcached))  # from the cache
    memcached.status.nodes = sorted(pod.name for pod in pods)  # written once, at the end, if it changed


@reconcile.cleanup  # only now is there a finalizer
async def farewell(memcached: Memcached, ctx: Context) -> None: ...


def selector(memcached: Memcached) -> dict[str, str]:
    """Returns the labels of the pods of one Memcached, and of no other."""
    return {"app": "memcached", "memcached": memcached.name}


def deployment(memcached: Memcached) -> Deployment:
    """Returns the desired Deployment; its namespace and its owner are set by `ctx.apply`."""
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
