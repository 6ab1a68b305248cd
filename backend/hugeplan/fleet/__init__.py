"""Nodes, their reports and their memory samples."""
