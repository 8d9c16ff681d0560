"""A client of OCI registries."""

from navarch.oci.registry.blobs import BlobOutcome
from navarch.oci.registry.client import RegistryClient, RemoteManifest
from navarch.oci.registry.credentials import CredentialSource, DockerCredentials, RegistryCredential
from navarch.oci.registry.options import RegistryOptions
from navarch.oci.registry.transfer import PushSummary, TransferProgress, pull, push

__all__ = [
    "BlobOutcome",
    "CredentialSource",
    "DockerCredentials",
    "PushSummary",
    "RegistryClient",
    "RegistryCredential",
    "RegistryOptions",
    "RemoteManifest",
    "TransferProgress",
    "pull",
    "push",
]
