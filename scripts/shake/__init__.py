"""Tests in bad weather: events, answers and processes come late, to find what counts on an order that nobody promised.

`make shake` runs the fast tests so; `python -m shake --help` says what can be chosen. What comes late is listed in `points`,
how late is drawn in `weather`, and `reach` takes both into every process that a test starts.
"""
