"""Notations that files, command lines and objects are written in: text in, values out, with nothing but the standard
library. Whoever reads a notation (recognition, linter, inventory, planner) reads it here, so that all read it alike.
"""
