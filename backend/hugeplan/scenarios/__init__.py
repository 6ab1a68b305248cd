"""Saved what-if inputs, their plans and the files that apply them."""
