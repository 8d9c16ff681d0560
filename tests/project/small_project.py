"""A small operator project, written into a folder: the subject of the tests of generated files."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from navarch.project.project import Project

PACKAGE: Final = "cache_operator"
_PROJECT: Final = """\
domain: example.com
layout:
- python.navarch.dev/v1
projectName: cache-operator
{namespaced}resources:
- api:
    crdVersion: v1
    namespaced: true
  controller: true
  domain: example.com
  group: cache
  kind: Memcached
  path: cache_operator.api.cache.v1alpha1.memcached
  version: v1alpha1
version: "3"
"""
_OPERATOR: Final = '''\
"""The operator of the tests."""

from navarch import Operator

operator = Operator("cache-operator", crds="verify")
'''
_MAIN: Final = '''\
"""Runs the operator."""

from navarch.operator import main

if __name__ == "__main__":
    main("cache_operator")
'''
_KIND: Final = '''\
"""The kind Memcached."""

from navarch import Resource, Spec, Status


class MemcachedSpec(Spec):
    size: int = 1
    """How many pods to run."""


class MemcachedStatus(Status):
    nodes: list[str] = []


class Memcached(Resource[MemcachedSpec, MemcachedStatus], group="cache.example.com", version="v1alpha1"):
    """A set of memcached pods."""
'''
_CONTROLLER: Final = '''\
"""Reconciles Memcached."""

from cache_operator import operator
from cache_operator.api.cache.v1alpha1.memcached import Memcached
from navarch import Context
from navarch.k8s.core.v1 import ConfigMap


@operator.controller(Memcached, owns=(ConfigMap,))
async def reconcile(memcached: Memcached, ctx: Context) -> None:
    await ctx.apply(ConfigMap(name=memcached.name, data={"size": str(memcached.spec.size)}))
    memcached.status.nodes = [f"{memcached.name}-{number}" for number in range(memcached.spec.size)]
'''
_WEBHOOK: Final = '''\
"""Refuses sizes that nobody needs."""

from cache_operator import operator
from cache_operator.api.cache.v1alpha1.memcached import Memcached
from navarch import Review


@operator.validate(Memcached)
async def small(memcached: Memcached, review: Review[Memcached]) -> None:
    if memcached.spec.size > 9:
        review.deny("expected a size of at most 9")
'''
_SAMPLE: Final = """\
apiVersion: cache.example.com/v1alpha1
kind: Memcached
metadata:
  name: memcached-sample
spec:
  size: 2
"""
CONTROLLER: Final = f"src/{PACKAGE}/controllers/memcached.py"


def write_project(root: Path, *, settings: str = "", namespaced: bool = False, webhook: bool = False) -> Project:
    """Writes the project; `settings` are lines of `[tool.navarch]`."""
    source = f"src/{PACKAGE}"
    files = {
        "PROJECT": _PROJECT.format(namespaced="namespaced: true\n" if namespaced else ""),
        "pyproject.toml": f"[tool.navarch]\n{settings}\n",
        f"{source}/__init__.py": _OPERATOR,
        f"{source}/__main__.py": _MAIN,
        f"{source}/api/cache/v1alpha1/memcached.py": _KIND,
        CONTROLLER: _CONTROLLER,
        "config/samples/cache_v1alpha1_memcached.yaml": _SAMPLE,
        **{
            f"{source}/{folder}/__init__.py": "" for folder in ("api", "api/cache", "api/cache/v1alpha1", "controllers")
        },
        **({f"{source}/webhooks/__init__.py": "", f"{source}/webhooks/memcached.py": _WEBHOOK} if webhook else {}),
    }
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return Project.find(root)


@contextmanager
def forgotten_code(package: str = PACKAGE) -> Iterator[None]:
    """What the block imports of a project is forgotten: the next test imports its own."""
    path = list(sys.path)
    yield
    sys.path[:] = path
    for name in [name for name in sys.modules if name == package or name.startswith(f"{package}.")]:
        del sys.modules[name]
