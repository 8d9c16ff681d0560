"""The group store.example.com: import one of its versions."""
