"""Reports in: read once, applied to their nodes in memory, and written in a handful of statements.

``incoming`` reads a body, ``node_update`` says what a report changes on its node, ``statements`` are the statements,
``writer`` runs them. Reports that arrive while a commit is under way share the next one, and each is answered after
its commit. These statements go to psycopg directly: a session would cost several times what they do.
"""
