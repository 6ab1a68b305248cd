"""Facts about processors: the TLB catalogue, and hardware facts read from a tlbbench document."""
