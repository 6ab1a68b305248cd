"""One file per kind of file, one row per kind in :mod:`hugeplan.lint.detect`."""
