"""First light."""

from navarch.client import Client


async def test_server_is_the_version_the_project_is_made_for(client: Client) -> None:
    """The rig runs Kubernetes 1.36."""
    assert (await client.discovery.version()).git_version == "v1.36.4"
