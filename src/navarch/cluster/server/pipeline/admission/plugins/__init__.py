"""The parts of admission that are built in: each looks at the objects of a few resources only."""
