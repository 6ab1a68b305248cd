"""hugeplan-agent: observes a Linux node, measures it with tlbbench, and sends what it saw to a hugeplan server."""

__version__ = "0.1.0"
