"""The node's memory: the ledger and its claims, page tables, pools, what Kubernetes reserves and reports."""
