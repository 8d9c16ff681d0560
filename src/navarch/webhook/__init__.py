"""Webhooks: admission, conversion, and the certificates that they are served with."""

from navarch.webhook.certificate_options import Certificates
from navarch.webhook.conversion import DeclaredConversion
from navarch.webhook.declaration import DeclaredWebhook, WebhookOptions
from navarch.webhook.review import Operation, Review
from navarch.webhook.verdict import ReviewError, ReviewVerdict

__all__ = [
    "Certificates",
    "DeclaredConversion",
    "DeclaredWebhook",
    "Operation",
    "Review",
    "ReviewError",
    "ReviewVerdict",
    "WebhookOptions",
]
