"""One file per subject of a check, one row per check in :mod:`hugeplan.proof.verdict`."""
