"""Trials that nodes sent: stored whole, listed with what they measured."""
