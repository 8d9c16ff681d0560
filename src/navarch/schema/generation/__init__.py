"""Generates CustomResourceDefinitions from classes."""
