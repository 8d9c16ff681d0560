"""The group class.example.com: import one of its versions."""
