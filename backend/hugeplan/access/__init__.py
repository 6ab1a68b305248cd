"""Tokens, browser sessions and roles."""
