"""StatefulSet: pods with stable names and volumes."""
