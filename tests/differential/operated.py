"""The built-in kinds that operators make beside pods: each plainer than those of `builtin`, and seen less often."""

from __future__ import annotations

from typing import Final

from differential.admitting_kinds import ADMITTING
from differential.class_kinds import CLASSES
from differential.configuring_kinds import CONFIGURING
from differential.connecting_kinds import CONNECTING
from differential.running_kinds import RUNNING

__all__ = ["OPERATED"]

OPERATED: Final = (*RUNNING, *CONNECTING, *CONFIGURING, *CLASSES, *ADMITTING)
