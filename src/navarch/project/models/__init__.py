"""Typed classes for kinds that others define: from CRDs or OpenAPI documents to the text of Python modules.

`crds` and `openapi` read kinds, `structs` and `names` name their classes, `annotations` and `kind_keywords` say what
their schemas say, `modules` puts them together, and `model_files` writes them.
"""

from navarch.project.models.crds import KindVersion, kinds_in
from navarch.project.models.model_files import model_files, plan_models, write_models
from navarch.project.models.openapi import kinds_in_openapi

__all__ = ["KindVersion", "kinds_in", "kinds_in_openapi", "model_files", "plan_models", "write_models"]
