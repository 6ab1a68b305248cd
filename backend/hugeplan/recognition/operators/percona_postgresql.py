"""Percona Operator for PostgreSQL: ``PerconaPGCluster``; its pods carry labels of Crunchy PGO, which it builds on."""

from __future__ import annotations

from dataclasses import replace

from hugeplan.recognition.base import Operator, Patch
from hugeplan.recognition.operators import crunchy

OPERATOR = Operator(
    name="Percona Operator for PostgreSQL",
    engine="postgresql",
    labels=crunchy.LABELS,
    is_server=lambda pod: crunchy.is_instance(pod) and crunchy.is_percona(pod),
    containers=frozenset({"database"}),
    resources=(
        replace(
            crunchy.RESOURCE,
            group="pgv2.percona.com",
            kind="PerconaPGCluster",
            title="Percona PerconaPGCluster",
            patch=Patch(
                kind="percona_postgresql_cluster",
                version="v2",
                plural="perconapgclusters",
                comments=(
                    "The operator sets huge_pages itself, to try or off, from the limits: its own value is replaced"
                    " here.",
                ),
            ),
        ),
    ),
    read=crunchy.read,
    switches_huge_pages=True,
)
