"""The built-in kinds, one module for each group and version: `navarch.k8s.apps.v1`, `navarch.k8s.core.v1`, ...

The modules are generated (see docs/builtin-kinds.md); nothing is imported before it is asked for.
"""
