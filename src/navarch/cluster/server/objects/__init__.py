"""Objects of any kind: their types, their storage, lists and watches, bodies, and managed fields."""
