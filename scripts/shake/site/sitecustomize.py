"""Python imports this module when it begins, wherever its folder is on PYTHONPATH."""

from shake.reach import begin

begin()
