"""What a page size saves per operation.

``accesses`` (what an operation reads) -> ``access_units`` (in pages or page-table lines) -> ``tlb_misses`` (how often
translation misses) -> ``walk_cost`` (what a page walk costs on this node; ``pressure_fit`` from measurements) ->
``translation_saving`` (ns per operation) -> ``page_size_gain`` (with the percentage). ``translation`` holds formulas.
"""
