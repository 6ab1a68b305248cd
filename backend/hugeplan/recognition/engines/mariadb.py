"""MariaDB in a container: as MySQL, with its own program and images."""

from __future__ import annotations

from hugeplan.recognition.base import ContainerEngine
from hugeplan.recognition.engines import mysql

ENGINE = ContainerEngine(
    engine="mariadb",
    programs=frozenset({"mariadbd", "mariadbd-safe"}),
    images=frozenset({"mariadb", "mariadb-galera", "mariadb-enterprise", "mariadb-enterprise-server"}),
    read=mysql.read,
    main_setting="innodb_buffer_pool_size",
)
