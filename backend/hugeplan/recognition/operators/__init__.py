"""The table of operators. Adding one is a file beside this one and a row here."""

from __future__ import annotations

from typing import Final

from hugeplan.recognition.base import Operator
from hugeplan.recognition.operators import (
    cass_operator,
    cloudnative_pg,
    crunchy,
    elastic,
    mariadb_operator,
    mongodb_operators,
    mysql_innodb_cluster,
    oracle_database,
    percona_mysql,
    percona_postgresql,
    presslabs_mysql,
    redis_operators,
    stackgres,
    strimzi,
    zalando,
)

#: In the order in which they are tried: Percona's pods carry Crunchy's labels too.
OPERATORS: Final[tuple[Operator, ...]] = (
    cloudnative_pg.OPERATOR,
    percona_postgresql.OPERATOR,
    crunchy.OPERATOR,
    zalando.OPERATOR,
    stackgres.OPERATOR,
    strimzi.OPERATOR,
    elastic.OPERATOR,
    cass_operator.OPERATOR,
    mariadb_operator.OPERATOR,
    mysql_innodb_cluster.OPERATOR,
    percona_mysql.OPERATOR,
    presslabs_mysql.OPERATOR,
    oracle_database.OPERATOR,
    redis_operators.OPERATOR,
    mongodb_operators.OPERATOR,
)

#: Labels that only one operator sets. The others are common: their operators are also seen by a container.
OWN_LABELS: Final = frozenset(name for operator in OPERATORS for name in operator.labels) - {
    "app",
    "app.kubernetes.io/name",
    "app.kubernetes.io/instance",
}

#: Container names that an operator gives to its engine.
CONTAINER_NAMES: Final = frozenset(name for operator in OPERATORS for name in operator.containers)

#: Places in the table of the operators that a label may stand for.
BY_LABEL: Final = {
    name: tuple(place for place, operator in enumerate(OPERATORS) if name in operator.labels)
    for name in {name for operator in OPERATORS for name in operator.labels}
}

#: Kinds of custom resources that say something of a database: (group, kind).
RESOURCE_KINDS: Final = frozenset(kind for operator in OPERATORS for kind in operator.resources)
