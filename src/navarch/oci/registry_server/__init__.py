"""A small OCI registry for demos, tests and embedded clusters."""

from navarch.oci.registry_server.server import RegistryServerOptions, serve, serve_in_thread

__all__ = ["RegistryServerOptions", "serve", "serve_in_thread"]
