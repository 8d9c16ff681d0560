"""Images and registries: the OCI image format, and a client and a server of the distribution protocol."""
