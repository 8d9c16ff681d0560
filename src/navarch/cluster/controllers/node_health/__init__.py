"""Controllers of node health: taints of silent nodes, eviction, and the garbage collection of pods."""
