"""How two page sizes are compared on a machine: pairs of batches, blocks of pairs, and when to stop.

``hugeplan trial`` and ``backend/validate`` both measure with what is here. ``batches`` and ``confidence`` are
arithmetic, ``trial`` is the loop; the other modules start what is measured, take pages and give everything back.
"""
