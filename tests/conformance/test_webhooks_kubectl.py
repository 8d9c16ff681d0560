"""kubectl shows the warnings and denials of an operator's webhooks as it shows those of the API server itself."""

from __future__ import annotations

import asyncio
from pathlib import Path

import rig
from conformance.test_webhooks import enforced, new_operator, running, written
from consoles import Kubectl
from navarch.client import Client, Config
from navarch.k8s.core.v1 import ConfigMap
from navarch.testing import Cluster
from navarch.webhook import Review

MANIFEST = """\
apiVersion: v1
kind: ConfigMap
metadata: {{name: settings, namespace: {namespace}}}
data: {{size: "{size}"}}
"""


async def test_kubectl_shows_warnings_and_denials(
    client: Client, config: Config, rig_or_none: rig.Cluster | None, embedded: Cluster | None, tmp_path: Path
) -> None:
    """A warning is printed beside the result; a denied field reads like a fault of a schema."""
    kubeconfig = tmp_path / "kubeconfig"
    if rig_or_none is not None:
        kubeconfig.write_bytes(rig_or_none.kubeconfig.read_bytes())
    else:
        assert embedded is not None
        assert embedded.access is not None
        kubeconfig.write_bytes(embedded.access.kubeconfig_file())
    kubectl = Kubectl(kubeconfig, tmp_path)
    operator = new_operator(client, **written(tmp_path, "127.0.0.1"))

    @operator.validate(ConfigMap)
    async def check(settings: ConfigMap, review: Review[ConfigMap]) -> None:
        if (settings.data or {}).get("size") == "0":
            review.deny("data.size", "must be positive")
        review.warn("size is deprecated; use replicas")

    def apply(size: int) -> str:
        (tmp_path / "settings.yaml").write_text(MANIFEST.format(namespace=client.options.namespace, size=size))
        return kubectl.answer(["apply", "-f", "settings.yaml"], client.options.namespace, tmp_path)

    async with running(client, operator):
        dry = client.using(dry_run=True)
        await enforced(lambda: dry.create(ConfigMap(name="c", data={"size": "0"})))
        assert await asyncio.to_thread(apply, 1) == (
            "configmap/settings created\nWarning: size is deprecated; use replicas\n"
        )
        denied = await asyncio.to_thread(apply, 0)
        assert "Warning: size is deprecated; use replicas\n" in denied
        assert 'data.size: Invalid value: "0": must be positive' in denied
        assert "settings" in denied
