"""Pods and PodTemplates."""
