"""Simulated nodes: their pods are data that pass through declared stages, by the client's clock."""

from navarch.cluster.nodes.simulated.nodes import SimulatedNodes
from navarch.cluster.nodes.simulated.stages import LIFE, Life, Stage

__all__ = ["LIFE", "Life", "SimulatedNodes", "Stage"]
