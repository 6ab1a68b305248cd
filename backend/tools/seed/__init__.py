"""Synthetic fleets: plausible nodes, labelled as made up, the same for the same seed.

``fleet`` draws the nodes from described distributions, ``runs`` makes the tlbbench document of each machine type, and
``writer`` copies everything into the database. What a report would have made is made by the code that reads reports.
"""
