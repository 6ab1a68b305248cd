"""The pure core: facts of a node, its workloads and its databases in, one plan out. No I/O, no clock, no state.

A tour, in the order of the pipeline (each package uses only those above it; `.importlinter` holds that):

1. ``model``         what goes in (node, sample, scenario) and what comes out (plan); ``units``, ``pages``, ``errors``.
2. ``demand``        what each engine needs: segments, pages, private memory. One file per engine in ``demand/engines``.
3. ``risk``          what tenants use, from their history; the probability that ordinary memory runs out; the forecast.
4. ``memory``        the ledger of the node: kernel, reservations, tenants, page tables, pools; Kubernetes arithmetic.
5. ``gain``          what a page size saves: accesses per operation, TLB misses, cost of a page walk, ns per operation.
6. ``pool_benefit``  what more buffer pool buys, from a throughput table or a working set.
7. ``choice``        candidates with scores, page sizes and buffer pools that fit together; the optimiser.
8. ``findings``      one check per file: is the node as planned?
9. ``plan``          plan() runs 2 to 8 in order. ``fleet``: many nodes. ``evaluation``: against published results.

Start at :func:`hugeplan.planner.plan.plan` and follow the calls.
"""
