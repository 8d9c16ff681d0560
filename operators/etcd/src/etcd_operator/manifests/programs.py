"""Containers that run the operator's own program, with whatever Python their image has."""

from __future__ import annotations

from importlib.resources import files
from typing import Final

from navarch.k8s.core.v1 import Container, EnvVar, EnvVarSource, ObjectFieldSelector

__all__ = ["PROGRAM_PORT", "PYTHON_IMAGE", "TLS_FOLDER", "program"]

PROGRAM_PORT: Final = 2378
PYTHON_IMAGE: Final = "python:3.12-slim"
TLS_FOLDER: Final = "TLS_FOLDER"
"""The variable that says where its certificate is; without it, it talks to anybody."""


def program(doing: str, image: str, root: str) -> Container:
    """Does one of the things that `pod_program` can, to the files below `root`."""
    text = files("etcd_operator").joinpath("pod_program.py").read_text()
    address = EnvVarSource(field_ref=ObjectFieldSelector(field_path="status.podIP"))
    return Container(
        name=doing,
        image=image,
        command=["/usr/local/bin/python3", "-c", text, doing],
        env=[
            EnvVar(name="POD_IP", value_from=address),
            EnvVar(name="PORT", value=str(PROGRAM_PORT)),
            EnvVar(name="ROOT", value=root),
        ],
    )
