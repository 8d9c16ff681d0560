"""The group discovery: import one of its versions."""
