"""The declarative base: naming convention of constraints, time-zone aware times, and shared column types."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from sqlalchemy import JSON, BigInteger, DateTime, MetaData, Select, Text, Uuid, tuple_
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import DeclarativeBase, InstrumentedAttribute, mapped_column

NAMING_CONVENTION = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}

PARTITIONED_TABLES = (
    "samples",
    "report_documents",
    "sealed_documents",
    "sealed_samples",
    "sample_hours",
    "sample_days",
)
"""Tables partitioned by time; their partitions are made by hugeplan.db.maintenance."""

JsonObject = dict[str, Any]

type_annotations = {
    str: Text(),
    int: BigInteger(),
    datetime: DateTime(timezone=True),
    UUID: Uuid(),
}

JsonbObject = Annotated[JsonObject, mapped_column(JSONB(none_as_null=True))]
"""A parsed part of a document, for queries: key order is PostgreSQL's."""

JsonDocument = Annotated[JsonObject, mapped_column(JSON(none_as_null=True))]
"""A document that comes back as it went in: the json type keeps the order of keys."""


class Base(DeclarativeBase):
    """Base of all tables."""

    metadata = MetaData(naming_convention=NAMING_CONVENTION)
    type_annotation_map = type_annotations


def newest_first(
    statement: Select[*tuple[Any, ...]],
    *key: InstrumentedAttribute[Any],
    limit: int,
    after: tuple[datetime, UUID] | None = None,
) -> Select[*tuple[Any, ...]]:
    """The rows of a page by a key of time and id, newest first: the first ones, or those after a key."""
    statement = statement.order_by(*(column.desc() for column in key)).limit(limit)
    return statement if after is None else statement.where(tuple_(*key) < after)
