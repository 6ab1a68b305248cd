"""Imports over REST: an inventory from what an organisation has, planned, and kept as scenarios."""
