"""The parts that every built-in kind is made of; no module here names a kind."""
