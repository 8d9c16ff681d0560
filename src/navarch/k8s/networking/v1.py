"""networking/v1 of Kubernetes v1.36.4. Generated: `python -m kubernetes_api generate`."""

from typing import Annotated

from navarch.api import Condition, IntOrString, ListMap, Model, Object, field
from navarch.k8s.core.v1 import TypedLocalObjectReference
from navarch.k8s.meta.v1 import LabelSelector

__all__ = [
    "HTTPIngressPath",
    "HTTPIngressRuleValue",
    "IPAddress",
    "IPAddressSpec",
    "IPBlock",
    "Ingress",
    "IngressBackend",
    "IngressClass",
    "IngressClassParametersReference",
    "IngressClassSpec",
    "IngressLoadBalancerIngress",
    "IngressLoadBalancerStatus",
    "IngressPortStatus",
    "IngressRule",
    "IngressServiceBackend",
    "IngressSpec",
    "IngressStatus",
    "IngressTLS",
    "NetworkPolicy",
    "NetworkPolicyEgressRule",
    "NetworkPolicyIngressRule",
    "NetworkPolicyPeer",
    "NetworkPolicyPort",
    "NetworkPolicySpec",
    "ParentReference",
    "ServiceBackendPort",
    "ServiceCIDR",
    "ServiceCIDRSpec",
    "ServiceCIDRStatus",
]


class ServiceBackendPort(Model):
    name: str | None = None
    number: int | None = None


class IngressServiceBackend(Model):
    name: str
    port: ServiceBackendPort | None = None


class IngressBackend(Model):
    resource: TypedLocalObjectReference | None = None
    service: IngressServiceBackend | None = None


class HTTPIngressPath(Model):
    backend: IngressBackend
    path_type: str
    path: str | None = None


class HTTPIngressRuleValue(Model):
    paths: list[HTTPIngressPath]


class ParentReference(Model):
    name: str
    resource: str
    group: str | None = None
    namespace: str | None = None


class IPAddressSpec(Model):
    parent_ref: ParentReference


class IPAddress(
    Object,
    group="networking.k8s.io",
    version="v1",
    plural="ipaddresses",
    namespaced=False,
    has_status=False,
    short_names=("ip",),
):
    spec: IPAddressSpec


class IPBlock(Model):
    cidr: str
    except_: list[str] | None = None


class IngressRule(Model):
    host: str | None = None
    http: HTTPIngressRuleValue | None = None


class IngressTLS(Model):
    hosts: list[str] | None = None
    secret_name: str | None = None


class IngressSpec(Model):
    default_backend: IngressBackend | None = None
    ingress_class_name: str | None = None
    rules: list[IngressRule] | None = None
    tls: list[IngressTLS] | None = None


class IngressPortStatus(Model):
    port: int
    protocol: str
    error: str | None = None


class IngressLoadBalancerIngress(Model):
    hostname: str | None = None
    ip: str | None = None
    ports: list[IngressPortStatus] | None = None


class IngressLoadBalancerStatus(Model):
    ingress: list[IngressLoadBalancerIngress] | None = None


class IngressStatus(Model):
    load_balancer: IngressLoadBalancerStatus | None = None


class Ingress(Object, group="networking.k8s.io", version="v1", plural="ingresses", short_names=("ing",)):
    spec: IngressSpec = field(default_factory=IngressSpec)
    status: IngressStatus = field(default_factory=IngressStatus)


class IngressClassParametersReference(Model):
    kind: str
    name: str
    api_group: str | None = None
    namespace: str | None = None
    scope: str | None = None


class IngressClassSpec(Model):
    controller: str | None = None
    parameters: IngressClassParametersReference | None = None


class IngressClass(
    Object,
    group="networking.k8s.io",
    version="v1",
    plural="ingressclasses",
    namespaced=False,
    has_status=False,
):
    spec: IngressClassSpec = field(default_factory=IngressClassSpec)


class NetworkPolicyPeer(Model):
    ip_block: IPBlock | None = None
    namespace_selector: LabelSelector | None = None
    pod_selector: LabelSelector | None = None


class NetworkPolicyPort(Model):
    end_port: int | None = None
    port: IntOrString | None = None
    protocol: str | None = None


class NetworkPolicyEgressRule(Model):
    ports: list[NetworkPolicyPort] | None = None
    to: list[NetworkPolicyPeer] | None = None


class NetworkPolicyIngressRule(Model):
    from_: list[NetworkPolicyPeer] | None = None
    ports: list[NetworkPolicyPort] | None = None


class NetworkPolicySpec(Model):
    egress: list[NetworkPolicyEgressRule] | None = None
    ingress: list[NetworkPolicyIngressRule] | None = None
    pod_selector: LabelSelector | None = None
    policy_types: list[str] | None = None


class NetworkPolicy(
    Object,
    group="networking.k8s.io",
    version="v1",
    plural="networkpolicies",
    has_status=False,
    short_names=("netpol",),
):
    spec: NetworkPolicySpec = field(default_factory=NetworkPolicySpec)


class ServiceCIDRSpec(Model):
    cidrs: list[str] | None = None


class ServiceCIDRStatus(Model):
    conditions: Annotated[list[Condition], ListMap("type")] | None = None


class ServiceCIDR(Object, group="networking.k8s.io", version="v1", plural="servicecidrs", namespaced=False):
    spec: ServiceCIDRSpec = field(default_factory=ServiceCIDRSpec)
    status: ServiceCIDRStatus = field(default_factory=ServiceCIDRStatus)
