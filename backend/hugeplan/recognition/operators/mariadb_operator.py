"""mariadb-operator: ``MariaDB`` with a whole file in ``myCnf``, or in a ConfigMap that it mounts."""

from __future__ import annotations

from dataclasses import replace

from hugeplan.recognition.base import CustomResource, Operator, Patch, label

_MARIADB = CustomResource(
    group="k8s.mariadb.com",
    kind="MariaDB",
    title="MariaDB",
    resources=("resources",),
    option_file=("myCnf",),
    image=("image",),
    replicas=("replicas",),
    patch=Patch(
        kind="mariadb_operator",
        version="v1alpha1",
        plural="mariadbs",
        title="MariaDB object",
    ),
)

OPERATOR = Operator(
    name="mariadb-operator",
    engine="mariadb",
    labels=("k8s.mariadb.com/mariadb", "app.kubernetes.io/instance"),
    is_server=lambda pod: (
        label(pod, "app.kubernetes.io/name") == "mariadb" and any(one.name == "mariadb" for one in pod.containers)
    ),
    containers=frozenset({"mariadb"}),
    resources=(_MARIADB, replace(_MARIADB, group="mariadb.mmontes.io")),
)
