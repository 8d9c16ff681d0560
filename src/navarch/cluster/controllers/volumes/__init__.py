"""Claims and volumes: binding, making volumes on the machine, growing them, and keeping what is in use."""
