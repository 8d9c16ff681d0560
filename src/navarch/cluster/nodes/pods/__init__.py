"""Pods of one node: one worker each, from the first container to the last word about it."""
