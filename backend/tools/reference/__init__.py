"""The reference pages, made from the code that they describe. ``python -m tools.reference`` writes them."""
