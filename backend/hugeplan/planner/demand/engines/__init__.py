"""One file per engine: its settings, its segments and its advice. The table of engines is ``demand/registry.py``."""
