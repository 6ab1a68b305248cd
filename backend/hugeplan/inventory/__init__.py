"""Inventory without an agent: nodes, databases and workloads read from what an organisation already has.

One source is one package or file: ``kubernetes``, ``prometheus``, ``ansible``, ``csv_table``. Each answers an
:class:`~hugeplan.inventory.model.Inventory`; :mod:`hugeplan.inventory.answer` plans it.
"""
