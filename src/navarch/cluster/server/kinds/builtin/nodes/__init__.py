"""Nodes, and the kinds that say what runs where: Leases, PriorityClasses, RuntimeClasses, devices."""
