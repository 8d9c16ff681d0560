"""The group flowcontrol: import one of its versions."""
