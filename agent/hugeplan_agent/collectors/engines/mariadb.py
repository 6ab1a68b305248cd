"""MariaDB: MySQL's option files with sections of its own."""

from __future__ import annotations

from hugeplan_agent.collectors.engines import mysql
from hugeplan_agent.collectors.engines.base import Engine

ENGINE = Engine("mariadb", frozenset({"mariadbd"}), lambda server: mysql.describe(server, "mariadb"))
