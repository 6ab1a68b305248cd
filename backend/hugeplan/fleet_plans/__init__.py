"""A scenario over many nodes: a job in a process of its own, its progress, and its results with exceptions first."""
