"""The generator: names, layout, and types that are never stale."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest

from kubernetes_api import cli, protobuf
from kubernetes_api.modules import WIDTH, generate
from kubernetes_api.naming import attribute, camel
from navarch.k8s.published import Published, _read, published

MODULES = generate(published())


def test_generated_modules_are_not_stale() -> None:
    """What is checked in is what the data makes of it."""
    assert cli.stale_modules() == []


def test_check_names_what_is_stale(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A changed, a missing and a left-over module each fail the check; generating mends all three."""
    monkeypatch.setattr(cli, "TYPES", tmp_path)
    assert cli.main(["generate"]) == 0
    (tmp_path / "apps/v1.py").write_text("changed = True\n")
    (tmp_path / "core/v1.py").unlink()
    (tmp_path / "apps/v1beta1.py").touch()
    assert cli.stale_modules() == ["apps/v1.py", "apps/v1beta1.py", "core/v1.py"]
    assert cli.main(["check"]) == 1
    assert "apps/v1.py is stale: run" in capsys.readouterr().err
    assert cli.main(["generate"]) == 0
    assert cli.main(["check"]) == 0


def test_check_names_messages_that_are_stale(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A message that lacks a field of its schema fails the check, and so does a kind without a message."""
    table = json.loads((protobuf.DATA / "messages.json").read_bytes())
    del table["messages"]["core/v1.ConfigMap"]["2"]
    del table["messages"]["apps/v1.Deployment"]
    (tmp_path / "messages.json").write_text(json.dumps(table))
    monkeypatch.setattr(protobuf, "DATA", tmp_path)
    assert protobuf.stale_messages(published()) == ["apps/v1.Deployment", "core/v1.ConfigMap"]
    assert cli.main(["check"]) == 1
    assert "core/v1.ConfigMap is stale: run" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("wire", "name"),
    [
        ("clusterIP", "cluster_ip"),
        ("clusterIPs", "cluster_ips"),
        ("podCIDRs", "pod_cidrs"),
        ("nonResourceURLs", "non_resource_urls"),
        ("setHostnameAsFQDN", "set_hostname_as_fqdn"),
        ("targetCPUUtilizationPercentage", "target_cpu_utilization_percentage"),
        ("openAPIV3Schema", "open_api_v3_schema"),
        ("x-kubernetes-list-type", "x_kubernetes_list_type"),
        ("$ref", "ref"),
        ("from", "from_"),
        ("bool", "bool_"),
        ("type", "type"),
        ("matchLabels", "match_labels"),
    ],
)
def test_attributes_are_snake_case(wire: str, name: str) -> None:
    """Acronyms are one word; Python's own words get an underscore."""
    assert attribute(wire) == name


def test_only_fields_that_need_it_are_renamed() -> None:
    """msgspec's own renaming does for most fields."""
    assert camel("match_labels") == "matchLabels"
    assert "    match_labels: dict[str, str] | None = None\n" in MODULES["meta/v1.py"]
    assert '    cluster_ip: str | None = field(name="clusterIP", default=None)\n' in MODULES["core/v1.py"]


@pytest.mark.parametrize("path", [path for path in MODULES if not path.endswith("__init__.py")])
def test_modules_export_what_they_define(path: str) -> None:
    """`__all__` has each class of the module and nothing that it imports."""
    module = importlib.import_module("navarch.k8s." + path.removesuffix(".py").replace("/", "."))
    own = {name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__}
    assert set(module.__all__) == own
    assert max(map(len, MODULES[path].splitlines())) <= WIDTH


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ({"type": "object", "properties": {"new": {"type": "tuple"}}}, "v1.LeaseSpec, field new: no Python type"),
        ({"type": "string"}, "v1.LeaseSpec is no struct"),
    ],
)
def test_schema_of_a_new_form_is_named(schema: dict[str, Any], problem: str) -> None:
    """What a later Kubernetes adds and the generator does not know is an error, never a wrong type."""

    def changed(name: str) -> Any:
        value = _read(name)
        return value | {"LeaseSpec": schema} if name == "schemas/io.k8s.api.coordination.v1.json" else value

    with pytest.raises(ValueError, match=problem):
        generate(Published(changed))


def test_order_of_the_data_does_not_matter() -> None:
    """The same data in another order make the same modules."""

    def reversed_read(name: str) -> object:
        value = _read(name)
        return dict(reversed(value.items())) if isinstance(value, dict) else value

    assert generate(Published(reversed_read)) == MODULES
