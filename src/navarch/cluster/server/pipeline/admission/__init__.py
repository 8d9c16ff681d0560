"""Admission: what may change or refuse a request after it was authorized and before it is stored."""
