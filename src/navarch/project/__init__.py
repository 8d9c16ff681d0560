"""An operator project as files: scaffolds, manifests, permissions and typed models.

Everything here works on a folder and on the operator that is declared in it; only `navarch.cli` talks to people.
"""
