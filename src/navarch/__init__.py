"""The Operator Framework for Python."""

__version__ = "0.1.0"
