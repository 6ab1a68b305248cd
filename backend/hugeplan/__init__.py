"""hugeplan: how many huge pages should each node reserve, of which size, and what will it buy?"""

__version__ = "0.1.0"
