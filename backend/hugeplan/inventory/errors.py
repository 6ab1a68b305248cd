"""What is wrong with an input as a whole. What is wrong with one object in it is a note of the inventory."""

from __future__ import annotations


class InventoryError(Exception):
    """The input cannot be read; the message is one line that says where and what is expected."""
