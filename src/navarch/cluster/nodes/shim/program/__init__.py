"""The program of the shim's process. It imports nothing but the standard library and itself: it must start fast, stay
small, and fork without threads. It imports as little of the library as possible: `typing` alone would take a fifth
of its memory.
"""
