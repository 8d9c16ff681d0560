# Written by `navarch generate models` from unusual.yaml. Do not edit it: run the command again.
# sha256:1c2a6d0c37ee102a4149d7c314f02983c1a7a4b0937566535fd424fed710fcd3
"""class.example.com/v1."""

from datetime import datetime
from typing import Annotated, Any

from navarch.api import Column, Meta, Model, Object, field

__all__ = [
    "AnnotatedException",
    "EmptyRule",
    "MetaModel",
    "RuleAnnotated",
    "RuleException",
    "RuleKind",
    "RuleMeta",
    "RuleSpec",
]


class MetaModel(Model):
    object: str | None = None


class RuleMeta(Model):
    model: MetaModel | None = None


class RuleException(Model):
    text: str | None = None


class AnnotatedException(Model):
    code: Annotated[int | None, Meta(format="")] = None


class RuleAnnotated(Model):
    exception: AnnotatedException | None = None


class RuleSpec(Model):
    from_: str
    class_: str | None = None
    none: str | None = field(name="None", default=None)
    int_: Annotated[int | None, Meta(format="int32")] = None
    list_: list[str] | None = None
    datetime_: datetime | None = None
    field_: str | None = None
    x_y_2: str | None = field(name="x-y", default=None)
    x_y: str | None = None
    x_y_3: str | None = field(name="x_y", default=None)
    field_3_d: bool | None = field(name="3d", default=None)
    value: str | None = field(name="$value", default=None)
    hidden: str | None = field(name="_hidden", default=None)
    gr_e: Annotated[int | None, Meta(format="")] = field(name="größe", default=None)
    field__2: str | None = field(name="", default=None)
    url: str | None = field(name="URL", default=None)
    meta: RuleMeta | None = None
    exception: RuleException | None = None
    annotated: RuleAnnotated | None = None


class EmptyRule(Object, group="class.example.com", version="v1", plural="emptyrules", has_status=False):
    spec: dict[str, Any] | None = None


class RuleKind(
    Object,
    group="class.example.com",
    version="v1",
    kind="Rule",
    plural="rules",
    singular="ruling",
    list_kind="RuleCollection",
    namespaced=False,
    has_status=False,
    columns=(Column("Level", path=".level", type="string"),),
    age_column=False,
    schema_patch={
        "required": ["metadata", "level"],
        "x-kubernetes-preserve-unknown-fields": True,
        "maxProperties": 9,
        "properties": {
            "apiVersion": None,
            "kind": None,
            "metadata": {"properties": {"name": {"type": "string", "maxLength": 9}}},
        },
    },
):
    level: str
    name_: str | None = None
    labels_: list[str] | None = None
    copy_: bool | None = None
    spec: RuleSpec | None = None
