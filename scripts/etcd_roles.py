"""The roles and CRDs of the etcd operator, written from what it says that it uses: `python -m etcd_roles`; `--check` fails if they are stale."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from etcd_operator.operator import SECRET_RIGHTS, etcd_operator
from etcd_operator.tls import SECRETS_ROLE
from navarch.client.target import kind_of
from navarch.operator import needed_by, roles_of
from navarch.operator.roles import Permission
from navarch.schema import crd

NAME = NAMESPACE = "etcd-operator"
ACCOUNT = f"system:serviceaccount:{NAMESPACE}:{NAME}"
SERVICE = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": f"{NAME}-webhook", "namespace": NAMESPACE},
    "spec": {"selector": {"app.kubernetes.io/name": NAME}, "ports": [{"port": 443, "targetPort": 9443}]},
}
TENANT = "team-a"
"""The namespace in the example of an operator for some namespaces."""
DEPLOY = Path(__file__).parent.parent / "operators" / "etcd" / "deploy"
_WRITTEN = (
    "# Written by `python -m etcd_roles` from what the operator says that it uses; its tests use every verb of it.\n"
)
_CLUSTER_WIDE = f"""\
# Secrets are not among the rights in the whole cluster. In each namespace whose Secrets it may use, bind the second role:
#   kubectl create rolebinding {SECRETS_ROLE} --namespace={TENANT} --clusterrole={SECRETS_ROLE} \\
#     --serviceaccount={NAMESPACE}:{NAME}
"""
_WEBHOOKS = """\
# On top of rbac.yaml, for an operator with ETCD_OPERATOR_WEBHOOKS=yes: it warns of backups and restores that name missing
# objects.
"""
_SOME_NAMESPACES = f"""\
# In the place of ../rbac.yaml, for an operator of some namespaces (ETCD_OPERATOR_NAMESPACES), after crds.yaml. Apply the Role
# and RoleBinding of {TENANT} in each of them:
#   sed 's/{TENANT}/team-b/' rbac.yaml | kubectl apply -f -
"""


def main(arguments: list[str]) -> int:
    """Writes the files, or checks that they are there."""
    stale = [name for name, content in written().items() if not _is_there(DEPLOY / name, content)]
    if "--check" not in arguments:
        for name, content in written().items():
            (DEPLOY / name).write_text(content)
    elif stale:
        print(f"{', '.join(stale)}: not what the etcd operator uses; run `python -m etcd_roles`", file=sys.stderr)
        return 1
    return 0


def _is_there(file: Path, content: str) -> bool:
    return file.exists() and file.read_text() == content


def written() -> dict[str, str]:
    """As YAML, by the name of the file."""
    return {
        "rbac.yaml": _WRITTEN + _CLUSTER_WIDE + _yaml(cluster_wide()),
        "namespaced/rbac.yaml": _WRITTEN + _SOME_NAMESPACES + _yaml(for_namespaces(TENANT)),
        "webhooks.yaml": _WRITTEN + _WEBHOOKS + _yaml([SERVICE, *for_webhooks()]),
        "namespaced/crds.yaml": "# Written by `python -m etcd_roles`. An operator for the whole cluster installs them itself.\n"
        + _yaml(crd(declared.primary) for declared in etcd_operator().controllers),
    }


def cluster_wide() -> list[dict[str, Any]]:
    """All but Secrets in the whole cluster; what it takes of Secrets is a role that nobody has yet."""
    permissions = needed_by(etcd_operator(), election_namespace=NAMESPACE)
    return [*_roles(permissions), *roles_of(SECRETS_ROLE, _secrets(None))]


def for_webhooks() -> list[dict[str, Any]]:
    """What the webhooks need on top."""
    plain, served = (needed_by(etcd_operator(webhooks=each), election_namespace=NAMESPACE) for each in (False, True))
    return roles_of(f"{NAME}-webhooks", [each for each in served if each not in plain], ACCOUNT)


def for_namespaces(*namespaces: str) -> list[dict[str, Any]]:
    """A Role in each of them; in the whole cluster, nodes and the operator's CRDs can be read."""
    operator = etcd_operator(namespaces=namespaces, crds="verify")
    secrets = [permission for namespace in namespaces for permission in _secrets(namespace)]
    return _roles([*needed_by(operator, election_namespace=NAMESPACE), *secrets])


def _secrets(namespace: str | None) -> Iterator[Permission]:
    kind = kind_of(SECRET_RIGHTS.what)
    for verb in SECRET_RIGHTS.verbs:
        yield replace(Permission(verb, kind.group, kind.plural), namespace=namespace)


def _roles(permissions: Iterable[Permission]) -> list[dict[str, Any]]:
    return roles_of(NAME, permissions, ACCOUNT)


def _yaml(manifests: Iterable[dict[str, Any]]) -> str:
    return "---\n".join(yaml.safe_dump(manifest, sort_keys=False) for manifest in manifests)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
