"""What more buffer pool buys: a pasted throughput table, the curve fitted to it, and the benefit of each size."""
