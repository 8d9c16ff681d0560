"""One program per webhook server: each serves a validating and a mutating webhook of Widgets at BENCH_PORT.

The validation checks two fields; the mutation adds a label and sets a field that is empty. webhook.go of
runtimes/controller_runtime has their twin in Go.
"""
