"""Serves CustomResourceDefinitions: accepts their names, establishes them, and finalizes them with their objects."""

from navarch.cluster.server.pipeline.crd_controller.controller import CrdController

__all__ = ["CrdController"]
