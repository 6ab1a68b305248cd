"""The pure core: facts of a node, its workloads and its databases in, one plan out. No I/O, no clock, no state.

The only files that it reads are data files of its own package (``demand/settings``).

A tour, in the order of the pipeline (each package uses only those above it; `.importlinter` holds that):

1. ``model``         what goes in (node, sample, scenario) and what comes out (plan); ``units``, ``pages``, ``errors``.
2. ``demand``        what each engine needs: segments, pages, private memory. One file per engine in ``demand/engines``.
3. ``risk``          what workloads use, from their history; how likely ordinary memory runs out; the forecast.
4. ``observation``   the node as it is: parts that sum to MemTotal, workloads and databases that run.
5. ``memory``        the ledger of the node: kernel, reservations, workloads, page tables, pools; Kubernetes arithmetic.
6. ``gain``          what a page size saves: accesses per operation, TLB misses, cost of a page walk, ns per operation.
7. ``pool_benefit``  what more buffer pool buys, from a throughput table or a working set.
8. ``choice``        candidates with scores, page sizes and buffer pools that fit together; the optimiser.
9. ``findings``      one check per file: is the node as planned?
10. ``plan``         plan() runs 2 to 9 in order; ``difference``: now -> planned; ``shortfall``: what would fit.
    ``fleet`` plans many nodes; ``evaluation`` is the model against published results.

Start at :func:`hugeplan.planner.plan.plan` and follow the calls.
"""
