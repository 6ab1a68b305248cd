"""Factories shared by the service's tests."""
