"""Kinds that configure the API server: webhooks, admission policies, flow control and APIServices."""
