"""What a node's newest report says, read from the one place where it is written.

That is the report's document, found by its sample: ``nodes`` says when that was taken. Sealing and retention put it
into ``node_states.newest_document`` when it leaves ``report_documents``. Written a second time, the state was a quarter
of a report's write-ahead log.

``node_states`` says it in columns where the document would be dear to read (a large report), or is none (a synthetic
node): ``processes_kept`` is set there. A replica of the release before writes ``processes_kept`` or ``newest_kept``, a
zstd frame (RFC 8878) with ``base_kept`` as its dictionary; one of an earlier release writes ``processes``. The document
counts where all three are empty.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any, Final
from uuid import UUID

import msgspec
from sqlalchemy import ColumnElement, Select, Text, and_, case, cast, func, literal_column, select, true
from sqlalchemy.engine import make_url
from sqlalchemy.orm import aliased

from hugeplan.db.models import NodeRow, NodeStateRow, ReportDocumentRow, ReportReferenceRow, ReportRow, SampleRow
from hugeplan.documents.against import REFERENCE_ID, restored, unframed
from hugeplan.documents.decoding import convert, decode
from hugeplan.documents.kept import unpack, unpacked_bytes
from hugeplan.documents.report import CollectorResult, Inventory, Sample
from hugeplan.documents.sealed import DamagedBlockError
from hugeplan.errors import DamagedError

_LARGEST_BYTES: Final = 1 << 26


class Newest(msgspec.Struct, frozen=True):
    """What the newest report says, each as JSON; the processes are in the sample."""

    inventory: msgspec.Raw
    sample: msgspec.Raw
    collectors: msgspec.Raw = msgspec.Raw(b"[]")

    def parsed(self) -> tuple[Inventory, Sample]:
        """Inventory and sample with every field, in the report or not."""
        return decode(Inventory, bytes(self.inventory)), decode(Sample, bytes(self.sample))

    def in_full(self) -> dict[str, Any]:
        """The same and the collectors, as JSON is parsed."""
        inventory, sample = self.parsed()
        collectors = [convert(CollectorResult, one) for one in msgspec.json.decode(self.collectors)]
        found: dict[str, Any] = msgspec.to_builtins(
            {"inventory": inventory, "sample": sample, "collectors": collectors}
        )
        return found


class _Former(Newest, frozen=True, kw_only=True):
    """What ``newest_kept`` holds."""

    processes: msgspec.Raw


_NOT_SAID: Final = UUID(int=0)
"""A report's id is nothing of a node's state."""
_newest, _former = msgspec.json.Decoder(Newest), msgspec.json.Decoder(_Former)

DOCUMENT = aliased(ReportDocumentRow, name="d")
"""As ``REFERENCE_ID`` calls it."""
IS_REPORT_OF_SAMPLE: Final = and_(ReportRow.node_id == SampleRow.node_id, ReportRow.report_id == SampleRow.report_id)
IS_DOCUMENT_OF_REPORT: Final = and_(
    DOCUMENT.node_id == ReportRow.node_id,
    DOCUMENT.received_at == ReportRow.received_at,
    DOCUMENT.report_id == ReportRow.report_id,
)
# An agent may say one time in all of its reports: so many of them are looked at.
_OF_ITS_TIME = (
    select(SampleRow.node_id, SampleRow.report_id)
    .where(SampleRow.node_id == NodeRow.id, SampleRow.taken_at == NodeRow.sampled_at)
    .limit(literal_column("1000"))
    .correlate(NodeRow)
    .lateral("s")
)
# LIMIT makes whole keys conditions of the indexes, whatever the planner thinks of the number of nodes.
_NEWEST = (
    select(DOCUMENT.document)
    .select_from(_OF_ITS_TIME)
    .join(
        ReportRow,
        and_(ReportRow.node_id == _OF_ITS_TIME.c.node_id, ReportRow.report_id == _OF_ITS_TIME.c.report_id),
    )
    .join(DOCUMENT, IS_DOCUMENT_OF_REPORT)
    .order_by(ReportRow.received_at.desc())
    .limit(literal_column("1"))
    .lateral("newest")
)
_KEPT = func.coalesce(_NEWEST.c.document, NodeStateRow.newest_document)
_OF_DOCUMENT = and_(
    NodeStateRow.processes_kept.is_(None),
    NodeStateRow.newest_kept.is_(None),
    NodeStateRow.processes == literal_column("'[]'::jsonb"),
    _KEPT.is_not(None),
)
_REFERENCE = aliased(ReportReferenceRow, name="f")
_REFERENCE_ID: ColumnElement[UUID] = literal_column(
    REFERENCE_ID.replace("d.document", "coalesce(newest.document, node_states.newest_document)")
)


def _column(name: str) -> Any:
    return case((_OF_DOCUMENT, None), else_=cast(getattr(NodeStateRow, name), Text)).label(name)


COLUMNS: Final = (
    *map(_column, ("inventory", "sample", "collectors", "processes")),
    NodeStateRow.processes_kept,
    NodeStateRow.base_kept,
    NodeStateRow.newest_kept,
    _KEPT.label("document"),
    _REFERENCE.document.label("reference"),
)
"""Of a statement that is ``with_newest``: what ``newest_of`` its rows reads. JSON is null where the document counts."""


def with_newest(statement: Select[*tuple[Any, ...]]) -> Select[*tuple[Any, ...]]:
    """A statement of nodes, joined with their states and newest documents."""
    is_its = and_(_REFERENCE.node_id == NodeRow.id, _REFERENCE.report_id == _REFERENCE_ID)
    return (
        statement.select_from(NodeRow)
        .join(NodeStateRow, NodeStateRow.node_id == NodeRow.id)
        .outerjoin(_NEWEST, true())
        .outerjoin(_REFERENCE, is_its)
    )


EXPORTED: Final = str(
    with_newest(select(func.row_to_json(literal_column("node_states")), *COLUMNS))
    .order_by(NodeRow.id)
    .compile(dialect=make_url("postgresql://").get_dialect()(), compile_kwargs={"literal_binds": True})
)
"""SQL: each row of ``node_states`` as JSON, and COLUMNS."""


def newest_of(row: Any, told: Callable[[int], None] = lambda _: None) -> Newest:
    """What the newest report of a row with COLUMNS says. DamagedError when it cannot be read back.

    ``told`` hears how many octets were read.
    """
    try:
        if row.inventory is None:
            return _newest.decode(restored(row.document or b"", row.reference, _NOT_SAID, told))
        if row.processes_kept is None and row.newest_kept is not None and row.base_kept:
            told(2 * unpacked_bytes(row.base_kept))
            return _of_former(row.newest_kept, row.base_kept)
        kept = None if row.processes != "[]" else row.processes_kept
        listed = row.processes.encode() if kept is None else unpack(kept)
        told(len(row.sample) + len(listed))
    except (DamagedBlockError, zlib.error, msgspec.MsgspecError) as error:
        raise DamagedError(f"The newest report of a node cannot be read back from the database: {error}.") from error
    sample = _with_processes(row.sample.encode(), listed)
    return Newest(msgspec.Raw(row.inventory.encode()), sample, msgspec.Raw(row.collectors.encode()))


def _of_former(newest_kept: bytes, base_kept: bytes) -> Newest:
    former = _former.decode(unframed(newest_kept, base_kept, at_most=_LARGEST_BYTES))
    sample = _with_processes(bytes(former.sample), bytes(former.processes))
    return Newest(former.inventory, sample, former.collectors)


def _with_processes(sample: bytes, processes: bytes) -> msgspec.Raw:
    """A sample beside which its processes are kept: where it has an empty list of them, the last one counts."""
    return msgspec.Raw(b"".join((sample.rstrip()[:-1], b',"processes":', processes, b"}")))
