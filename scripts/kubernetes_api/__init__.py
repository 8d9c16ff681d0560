"""Kubernetes' own API as data and as types.

`python -m kubernetes_api fetch` reads what an API server publishes into `src/navarch/k8s/data/`, `generate` writes the
typed kinds from that, and `check` fails if the types are not what the data makes of them.
"""
