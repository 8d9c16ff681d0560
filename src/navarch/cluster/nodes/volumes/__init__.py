"""The volumes of pods: prepared for mounting, and updated while the pod runs."""
