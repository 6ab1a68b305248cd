"""The database engines that are recognised on a node: one file each, and this table."""

from __future__ import annotations

from hugeplan_agent.collectors.engines import (
    db2,
    jvm,
    mariadb,
    mongodb,
    mysql,
    oracle,
    postgresql,
    redis,
    sap_hana,
    sql_server,
)
from hugeplan_agent.collectors.engines.base import Engine

ENGINES: tuple[Engine, ...] = (
    postgresql.ENGINE,
    mysql.ENGINE,
    mariadb.ENGINE,
    oracle.ENGINE,
    db2.ENGINE,
    jvm.ENGINE,
    redis.ENGINE,
    mongodb.ENGINE,
    sap_hana.ENGINE,
    sql_server.ENGINE,
)
