"""Percona's operators for MySQL: ``PerconaXtraDBCluster`` and ``PerconaServerMySQL`` with a my.cnf text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hugeplan.recognition.base import CustomResource, Operator, PodView, Reference, label

_XTRADB: Final = CustomResource(
    group="pxc.percona.com",
    kind="PerconaXtraDBCluster",
    title="Percona XtraDB Cluster",
    resources=("pxc", "resources"),
    option_file=("pxc", "configuration"),
    image=("pxc", "image"),
    replicas=("pxc", "size"),
)
_SERVER: Final = CustomResource(
    group="ps.percona.com",
    kind="PerconaServerMySQL",
    title="Percona Server for MySQL",
    resources=("mysql", "resources"),
    option_file=("mysql", "configuration"),
    image=("mysql", "image"),
    replicas=("mysql", "size"),
)


def references(pod: PodView) -> Sequence[Reference]:
    """The recommended labels; the component tells servers from proxies."""
    name, component = label(pod, "app.kubernetes.io/instance"), label(pod, "app.kubernetes.io/component")
    row = {"pxc": _XTRADB, "mysql": _SERVER, "database": _SERVER}.get(component or "")
    if name is None or row is None or "percona" not in (label(pod, "app.kubernetes.io/name") or ""):
        return ()
    return [Reference(row.group, row.kind, name)]


OPERATOR = Operator(
    name="Percona Operator for MySQL",
    engine="mysql",
    labels=("app.kubernetes.io/instance",),
    references=references,
    containers=frozenset({"pxc", "mysql"}),
    resources=(_XTRADB, _SERVER),
    computes="innodb_buffer_pool_size",
)
