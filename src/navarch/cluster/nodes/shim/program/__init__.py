"""What runs in the shim's own process. Imports nothing but the standard library and itself: it must start in moments,
stay small, and fork without a thread in sight. Of that library it imports no more than it must: `typing` alone would
take a fifth of its memory.
"""
