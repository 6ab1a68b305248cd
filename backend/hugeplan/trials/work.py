"""What the sandbox does with trials: read them. One of some hundred blocks is 50,000 values."""

from __future__ import annotations

import gc
import hashlib
import pickle
from datetime import datetime
from typing import Any, Final

import msgspec

from hugeplan.api.unread import Unread
from hugeplan.documents.kept import pack
from hugeplan.documents.trial import TrialDocument

READ: Final = f"{__name__}:read"


class ReadTrial(msgspec.Struct, frozen=True):
    """What the service needs of a trial. ``document`` is packed as it is kept, ``digest`` that of its bytes."""

    id: str
    machine_id: str | None
    started_at: datetime
    summary: dict[str, Any]
    digest: bytes
    document: bytes


decode = msgspec.msgpack.Decoder(ReadTrial).decode


def prepare() -> None:
    """The process of a trial ends with it: what is read has no cycles to look for."""
    gc.disable()


def read(payload: bytes) -> bytes:
    """The trial, read. InvalidInputError names the field that is wrong."""
    body: Unread[TrialDocument] = pickle.loads(payload)  # noqa: S301 - the service wrote it
    document = body.read(TrialDocument)
    kept = document.model_dump_json().encode()
    found = ReadTrial(
        id=document.id,
        machine_id=document.machine.machine_id,
        started_at=document.started_at,
        summary=_summary(document),
        digest=hashlib.sha256(kept).digest(),
        document=pack(kept),
    )
    return msgspec.msgpack.encode(found)


def _summary(document: TrialDocument) -> dict[str, object]:
    """The document without its blocks, with their number."""
    found = document.model_dump(mode="json", exclude={"page_sizes"})
    sizes = [
        size.model_dump(mode="json", exclude={"blocks"}) | {"blocks": len(size.blocks)} for size in document.page_sizes
    ]
    return found | {"page_sizes": sizes}
