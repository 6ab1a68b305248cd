"""The table of engines in containers. Adding one is a file beside this one and a row here."""

from __future__ import annotations

from typing import Final

from hugeplan.recognition.base import ContainerEngine
from hugeplan.recognition.engines import db2, jvm, mongodb, mysql, oracle, postgresql, redis, sqlserver

#: In the order in which they are tried: MariaDB's images also hold a program named mysqld.
CONTAINER_ENGINES: Final[tuple[ContainerEngine, ...]] = (
    postgresql.ENGINE,
    mysql.MARIADB,
    mysql.ENGINE,
    oracle.ENGINE,
    redis.ENGINE,
    mongodb.ENGINE,
    db2.ENGINE,
    sqlserver.ENGINE,
    jvm.ENGINE,
)

BY_NAME: Final = {row.engine: row for row in CONTAINER_ENGINES}
