"""What docs/webhooks.md shows is so."""

from __future__ import annotations

from types import ModuleType

import pytest
import yaml

from docs.pages import blocks, module_of
from navarch.api import Dynamic
from navarch.errors import Invalid
from navarch.operator import configurations_of
from navarch.testing import Cluster


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    return module_of("webhooks.md", tmp_path_factory.mktemp("webhooks"))


async def test_tests_of_the_page_pass(page: ModuleType) -> None:
    """Both of them, as they are printed."""
    await page.test_shops_do_not_shrink()
    await page.test_missing_catalog_is_warned_of()


async def test_operator_of_the_page_works(cluster: Cluster, page: ModuleType) -> None:
    """It denies in the words of the page, and changes pods once."""
    page.operator.controller(page.Shop)(_reconcile)
    async with cluster.run(page.operator):
        shop = await cluster.create(page.Shop(name="corner", spec=page.ShopSpec(size=3)))
        shop.spec.size = 1
        with pytest.raises(Invalid) as refused:
            await cluster.client.replace(shop)
        (cause,) = refused.value.causes
        assert f'The Shop "corner" is invalid: {cause}\n' == blocks("webhooks.md", "text")[0]
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", "labels": {"shop": "yes"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        }
        made = await cluster.create(Dynamic(pod))
        assert [each["key"] for each in made["spec"]["tolerations"]].count("old") == 1


async def _reconcile(shop: object, ctx: object) -> None: ...


def test_service_of_the_page_is_the_one_that_is_configured(page: ModuleType) -> None:
    """Its name and port are the defaults."""
    (service,) = (yaml.safe_load(block) for block in blocks("webhooks.md", "yaml"))
    for configuration in configurations_of(page.operator, namespace="shops"):
        for entry in configuration["webhooks"]:
            reached = entry["clientConfig"]["service"]
            assert (reached["name"], reached["port"]) == (
                service["metadata"]["name"],
                service["spec"]["ports"][0]["port"],
            )
