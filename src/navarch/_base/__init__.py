"""Clock, backoff and tasks: the only room that may sleep, spawn, or ask for the time."""
