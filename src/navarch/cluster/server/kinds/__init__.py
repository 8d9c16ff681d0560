"""The kinds that the server serves: built-in ones, and custom ones from their definitions."""
