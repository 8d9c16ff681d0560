"""Deployment: one ReplicaSet per pod template, and the rollout from one to the next."""
