"""The audit log: its records, the file that holds them, and the log that writes them."""
