"""Operators' custom resources for server-side apply: one renderer per operator."""
