"""Kinds about networks."""

from __future__ import annotations

from typing import Final

from differential.kinds import GONE, Kind
from differential.steps import Json

__all__ = ["CONNECTING"]

_LABELS: Json = {"matchLabels": {"app": "a"}}
_BACKEND: Json = {"service": {"name": "s", "port": {"number": 80}}}
_HTTP: Json = {"paths": [{"path": "/", "pathType": "Prefix", "backend": _BACKEND}]}

CONNECTING: Final = (
    Kind(
        "Ingress",
        "ingresses",
        {"spec": {"rules": [{"host": "a.example.com", "http": _HTTP}]}},
        {
            "spec.rules": [
                [{"http": _HTTP}],
                [{"host": "*.example.com", "http": _HTTP}],
                [{"host": "1.2.3.4", "http": _HTTP}],
                [{"host": "BAD"}],
                [],
                [{"host": "a", "http": {"paths": []}}],
                [{"http": {"paths": [{"path": "x", "backend": _BACKEND}]}}],
                [{"http": {"paths": [{"path": "/a//b", "pathType": "Exact", "backend": {}}]}}],
                [{"http": {"paths": [{"pathType": "ImplementationSpecific", "backend": _BACKEND}]}}],
                [{"http": {"paths": [{"path": "/", "pathType": "Odd", "backend": _BACKEND}]}}],
            ],
            "spec.defaultBackend": [
                _BACKEND,
                {"service": {"name": "s", "port": {"name": "http"}}},
                {"service": {"name": "S", "port": {"name": "http", "number": 1}}},
                {"service": {"name": "s"}},
                {"resource": {"apiGroup": "x.io", "kind": "K", "name": "n"}},
                {"resource": {"kind": "", "name": ""}, "service": {"name": "s", "port": {"number": 70000}}},
            ],
            "spec.ingressClassName": ["nginx", "BAD!", None],
            "spec.tls": [[{"hosts": ["a.example.com"], "secretName": "s"}], [{"hosts": ["*"]}], [{}]],
            "metadata.annotations": [{"kubernetes.io/ingress.class": "nginx"}],
        },
        group="networking.k8s.io",
        status={
            "loadBalancer": [
                {"ingress": [{"ip": "1.2.3.4"}]},
                {"ingress": [{"ip": "x"}]},
                {"ingress": [{"hostname": "a.b", "ports": [{"port": 80, "protocol": "TCP"}]}]},
                {},
            ]
        },
    ),
    Kind(
        "NetworkPolicy",
        "networkpolicies",
        {"spec": {"podSelector": {}}},
        {
            "spec.podSelector": [_LABELS, {"matchLabels": {"app": "not valid!"}}, None],
            "spec.policyTypes": [["Ingress"], ["Egress"], ["Ingress", "Egress"], ["Odd"], [], ["Ingress"] * 3],
            "spec.ingress": [
                [{}],
                [{"from": [{"podSelector": {}}], "ports": [{"port": 80}]}],
                [{"from": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}}]}],
                [{"from": [{"ipBlock": {"cidr": "bad"}}]}],
                [{"from": [{}]}],
                [{"from": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["11.0.0.0/8"]}, "podSelector": {}}]}],
                [{"ports": [{"port": 80, "endPort": 70, "protocol": "TCP"}]}],
                [{"ports": [{"port": "http", "protocol": "Odd"}]}],
            ],
            "spec.egress": [[{}], [{"to": [{"namespaceSelector": {}}], "ports": [{"protocol": "UDP", "port": 53}]}]],
        },
        group="networking.k8s.io",
    ),
    Kind(
        "EndpointSlice",
        "endpointslices",
        {"addressType": "IPv4", "endpoints": [{"addresses": ["10.1.1.1"]}], "ports": [{"name": "a", "port": 80}]},
        {
            "addressType": ["IPv6", "FQDN", "Odd", GONE],
            "endpoints": [
                [],
                None,
                [{"addresses": ["10.1.1.2"], "conditions": {"ready": True}, "nodeName": "n"}],
                [{"addresses": []}],
                [{"addresses": ["bad"]}],
                [{"addresses": ["169.254.0.1"], "hostname": "BAD"}],
                [{"addresses": ["10.1.1.1"], "targetRef": {"kind": "Pod", "name": "p", "namespace": "$ns"}}],
                [{"addresses": ["10.1.1.1"], "hints": {"forZones": [{"name": "z"}]}, "zone": "z"}],
            ],
            "ports": [
                [],
                None,
                [{"port": 80}],
                [{"port": 80}, {"port": 81}],
                [{"name": "BAD_", "port": 70000, "protocol": "Odd"}],
                [{"name": "a", "port": 80, "appProtocol": "http"}],
            ],
        },
        group="discovery.k8s.io",
    ),
)
