"""Runs of tlbbench and their curves."""
