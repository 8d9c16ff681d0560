"""The roles of the etcd operator, written from what it says that it uses: `python -m etcd_roles`; `--check` fails if they are stale."""

from __future__ import annotations

import sys
from pathlib import Path

import yaml

from etcd_operator.operator import etcd_operator
from navarch.operator import needed_by, roles_of

NAME = NAMESPACE = "etcd-operator"
FILE = Path(__file__).parent.parent / "operators" / "etcd" / "deploy" / "rbac.yaml"
_HEAD = (
    "# Written by `python -m etcd_roles` from what the operator says that it uses; its tests use every verb of it.\n"
)


def main(arguments: list[str]) -> int:
    """Writes the roles, or checks that they are there."""
    content = written()
    if "--check" not in arguments:
        FILE.write_text(content)
    elif not FILE.exists() or FILE.read_text() != content:
        print(f"{FILE.name} is not what the etcd operator uses; run `python -m etcd_roles`", file=sys.stderr)
        return 1
    return 0


def written() -> str:
    """As YAML."""
    permissions = needed_by(etcd_operator(), election_namespace=NAMESPACE)
    roles = roles_of(NAME, permissions, f"system:serviceaccount:{NAMESPACE}:{NAME}")
    return _HEAD + "---\n".join(yaml.safe_dump(role, sort_keys=False) for role in roles)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
