"""Webhooks: programs elsewhere that are asked whether a request may pass, and in which form."""
