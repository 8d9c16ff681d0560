"""Debian's Prometheus scrapes a deployed operator: every expression of its dashboard and alerts returns series."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from navarch.api import Dynamic
from navarch.k8s.authentication.v1 import TokenRequest, TokenRequestSpec
from navarch.k8s.core.v1 import Pod, ServiceAccount
from navarch.project.dashboards import panels
from navarch.project.generate import generate, load_deployment
from navarch.project.manifests.alerts import alerts
from navarch.project.project import Project
from navarch.testing import Cluster
from project.deployments import NAMESPACE, deployed, memcached, ready
from project.small_project import write_project
from rig.debian_package import program_of
from rig.ports import reserved

SECONDS = 120.0


async def token_of_a_scraper(cluster: Cluster) -> str:
    """The token of a ServiceAccount that the generated role lets read the metrics."""
    await cluster.create(ServiceAccount(name="scraper"))
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "scraper"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "cache-operator-metrics-reader",
        },
        "subjects": [{"kind": "ServiceAccount", "name": "scraper", "namespace": "default"}],
    }
    await cluster.create(Dynamic(binding))
    request = TokenRequest(spec=TokenRequestSpec(audiences=[]))
    made = await cluster.client.create_subresource(ServiceAccount, "scraper", "token", request)
    assert made.status.token
    return made.status.token


@contextmanager
def scraping(folder: Path, job: str, targets: list[str], token: str, rules: Path) -> Iterator[str]:
    """Prometheus with the rules, which scrapes these targets each second; yields its address."""
    scrape = {
        "job_name": job,
        "scheme": "https",
        "scrape_interval": "1s",
        "authorization": {"credentials": token},
        "tls_config": {"insecure_skip_verify": True},
        "static_configs": [{"targets": targets}],
    }
    configuration = {
        "global": {"evaluation_interval": "1s"},
        "rule_files": [str(rules)],
        "scrape_configs": [scrape],
    }
    (folder / "prometheus.yml").write_text(yaml.safe_dump(configuration))
    with reserved(1) as (port,), (folder / "log").open("wb") as log:
        command = [
            str(program_of("prometheus")),
            f"--config.file={folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
        ]
        with subprocess.Popen(command, stdout=log, stderr=log) as process:
            try:
                yield f"http://127.0.0.1:{port}"
            finally:
                process.kill()


async def asked(session: aiohttp.ClientSession, address: str, path: str, **query: str) -> Any:
    """The data of an answer; None while Prometheus does not serve yet."""
    try:
        async with session.get(f"{address}/api/v1/{path}", params=query) as response:
            found = await response.json()
    except (aiohttp.ClientConnectionError, aiohttp.ContentTypeError):
        return None
    assert found["status"] == "success", (query, found)
    return found["data"]


def expressions(project: Project) -> list[str]:
    """Those of the dashboard, with its variables as Grafana sets them, and of the alerts, without their thresholds."""
    model = load_deployment(project).model
    shown = [text for panel in panels(model) for text in panel.expressions.values()]
    shown = [text.replace("$job", model.metrics_service).replace("$__rate_interval", "1m") for text in shown]
    return [*shown, *(alert.expression for alert in alerts(model))]


@pytest.mark.long
@pytest.mark.timeout(400)
async def test_every_expression_returns_series(tmp_path: Path) -> None:
    """With a token of the generated role; without one Prometheus would get nothing."""
    project = write_project(tmp_path / "project", webhook=True)
    async with deployed(project, tmp_path) as cluster:
        await ready(cluster)
        generate(project, ["dashboards"])
        for size in range(3):
            await cluster.create(memcached(f"cache-{size}", size))
        pods = await cluster.list(Pod, namespace=NAMESPACE)
        targets = [f"{pod.status.pod_ip}:8443" for pod in pods]
        job = "cache-operator-controller-manager-metrics-service"
        token = await token_of_a_scraper(cluster)
        rules = project.root / "grafana/alerts.yaml"
        with scraping(tmp_path, job, targets, token, rules) as address:
            await all_return_series(cluster, address, expressions(project))


async def all_return_series(cluster: Cluster, address: str, wanted: list[str]) -> None:
    """Returns when each expression has series, and each rule was evaluated."""
    assert len(wanted) > 30
    async with aiohttp.ClientSession() as session:

        async def without_series() -> list[str]:
            answers = await asyncio.gather(*(asked(session, address, "query", query=text) for text in wanted))
            return [text for text, data in zip(wanted, answers, strict=True) if not (data and data["result"])]

        await cluster.eventually(
            without_series, lambda left: not left, timeout=SECONDS, what="series for every expression"
        )
        await cluster.eventually(
            lambda: asked(session, address, "rules"), evaluated, timeout=SECONDS, what="rules that were evaluated"
        )


def evaluated(data: Any) -> bool:
    """Whether each rule was evaluated without an error."""
    rules = [rule for group in data["groups"] for rule in group["rules"]]
    return bool(rules) and all(rule["health"] == "ok" for rule in rules)
