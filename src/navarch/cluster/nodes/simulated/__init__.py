"""Nodes whose pods are data: each walks through declared stages of life, by the clock that was handed over."""

from navarch.cluster.nodes.simulated.nodes import SimulatedNodes
from navarch.cluster.nodes.simulated.stages import LIFE, Life, Stage

__all__ = ["LIFE", "Life", "SimulatedNodes", "Stage"]
