"""The operator of a package is loaded with everything that its modules declare."""

import sys
from pathlib import Path

import pytest

from navarch.errors import DefinitionError
from navarch.operator import load_operator

KIND = """
from navarch import Context, Resource, Spec, Status
from {package} import operator


class Cache(Resource[Spec, Status], group="example.com", version="v1"):
    "A cache."


@operator.controller(Cache)
async def reconcile(cache: Cache, ctx: Context) -> None: ...
"""


def test_modules_of_controllers_and_webhooks_are_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those in packages below."""
    root = tmp_path / "loaded_operator"
    (root / "controllers" / "deep").mkdir(parents=True)
    (root / "webhooks").mkdir()
    (root / "__init__.py").write_text('from navarch import Operator\noperator = Operator("loaded")\n')
    (root / "controllers" / "__init__.py").touch()
    (root / "controllers" / "deep" / "__init__.py").touch()
    (root / "controllers" / "deep" / "cache.py").write_text(KIND.format(package="loaded_operator"))
    monkeypatch.syspath_prepend(tmp_path)
    try:
        assert [each.name for each in load_operator("loaded_operator").controllers] == ["cache"]
    finally:
        for name in [name for name in sys.modules if name.startswith("loaded_operator")]:
            del sys.modules[name]


def test_package_without_an_operator_is_refused() -> None:
    """The error names the file and the line that is missing."""
    with pytest.raises(DefinitionError, match=r"json/__init__.py, got none; write operator = Operator"):
        load_operator("json")
