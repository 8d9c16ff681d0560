"""One program per runtime, each with one controller of Widgets: `python -m runtimes.NAME noop|write|follow`."""
