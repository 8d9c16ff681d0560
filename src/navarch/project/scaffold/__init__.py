"""Scaffolds: the files that commands write once, and that belong to the user from then on.

All of them are a function of the list of scaffolds and of the templates: see `render`.
"""
