"""Oracle's MySQL Operator: ``InnoDBCluster`` with a whole file in ``spec.mycnf``."""

from __future__ import annotations

from hugeplan.recognition.base import CustomResource, Operator, label

OPERATOR = Operator(
    name="MySQL Operator",
    engine="mysql",
    labels=("mysql.oracle.com/cluster",),
    is_server=lambda pod: label(pod, "component") == "mysqld",  # not a router
    containers=frozenset({"mysql"}),
    resources=(
        CustomResource(
            group="mysql.oracle.com",
            kind="InnoDBCluster",
            option_file=("mycnf",),
            version=("version",),
            # A whole pod, which the operator merges into its own: containers are found by their names.
            limits_words="spec.podSpec.containers, resources of the one named mysql,",
        ),
    ),
)
