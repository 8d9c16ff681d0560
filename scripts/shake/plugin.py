"""The pytest plugin of `python -m shake`: the weather in the process of the tests."""

from shake.reach import change_all

change_all()
