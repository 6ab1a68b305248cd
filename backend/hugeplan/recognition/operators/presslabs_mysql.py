"""Bitpoke's (Presslabs') MySQL operator: ``MysqlCluster`` with ``spec.mysqlConf``."""

from __future__ import annotations

from hugeplan.recognition.base import CustomResource, Operator

OPERATOR = Operator(
    name="Bitpoke MySQL operator",
    engine="mysql",
    labels=("mysql.presslabs.org/cluster",),
    containers=frozenset({"mysql"}),
    resources=(
        CustomResource(
            group="mysql.presslabs.org",
            kind="MysqlCluster",
            parameters=("mysqlConf",),
            version=("mysqlVersion",),
            limits_words="spec.podSpec.resources",
        ),
    ),
)
