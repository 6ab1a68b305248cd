"""A trial's result as a document, and the folder that it is written into."""

from __future__ import annotations

import argparse
import math
import os
import platform
import sys
import uuid
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final, cast

from hugeplan.cli import InputError
from hugeplan.cli.trial_text import picture, sentence, table
from hugeplan.documents.trial import (
    MeasuredGain,
    TrialBatch,
    TrialBlock,
    TrialDocument,
    TrialMachine,
    TrialPageSize,
    TrialPair,
    TrialShape,
    TrialStatus,
)
from hugeplan.measuring.batches import Batch
from hugeplan.measuring.confidence import Interval
from hugeplan.measuring.trial import EQUAL, Arm, Block, Measured
from hugeplan.planner.model import GIB, MIB
from hugeplan.planner.pages import page_label

_PAGE_BYTES: Final = {"2M": 2 * MIB, "1G": GIB, "thp": 2 * MIB, EQUAL: os.sysconf("SC_PAGE_SIZE")}


@dataclass(frozen=True, slots=True)
class About:
    """What a document says beside the measurement."""

    engine: str
    version: str | None
    shape: TrialShape
    started: datetime
    seed: int


def document_of(arguments: argparse.Namespace, measured: Measured, about: About) -> TrialDocument:
    """The measurement with its machine."""
    return TrialDocument(
        id=uuid.uuid4().hex,
        started_at=about.started,
        seconds=measured.seconds,
        stopped=cast(Any, measured.stopped),  # the model checks it
        machine=machine(),
        engine=about.engine,
        version=about.version,
        shape=about.shape,
        measure="cpu_per_operation" if measured.by_cpu else "rate",
        metric=getattr(arguments, "metric", None),
        others_share=measured.others_share,
        priority=arguments.priority,
        seed=about.seed,
        sentence=sentence(measured, page_label(os.sysconf("SC_PAGE_SIZE"))),
        page_sizes=tuple(_page_size(measured, arm) for arm in measured.arms),
    )


def _page_size(measured: Measured, arm: Arm) -> TrialPageSize:
    gain = arm.gain(by_cpu=measured.by_cpu) if arm.blocks else None
    status = TrialStatus.MEASURED if measured.is_usable(arm) else TrialStatus.TOO_NOISY
    return TrialPageSize(
        page_size=cast(Any, arm.name),  # the model checks it
        page_bytes=_PAGE_BYTES.get(arm.name),
        status=status if arm.blocks else TrialStatus.SKIPPED,
        reason=((arm.skipped or "") if arm.blocks else measured.why_none(arm))[:300] or None,
        gain=None if gain is None else _gain(gain),
        blocks=tuple(_block(block) for block in arm.blocks),
    )


def _gain(gain: Interval) -> MeasuredGain:
    def known(value: float) -> float | None:
        return round(value, 3) if math.isfinite(value) and value <= 1e6 else None

    return MeasuredGain(likely=round(gain.likely, 3), low=known(gain.low), high=known(gain.high))


def _block(block: Block) -> TrialBlock:
    return TrialBlock(
        swapped=block.swapped,
        seconds=round(block.seconds, 3),
        others_share=None if block.others_share is None else round(min(1.0, max(0.0, block.others_share)), 3),
        pairs=tuple(TrialPair(base=_batch(pair.first), other=_batch(pair.second)) for pair in block.pairs),
    )


def _batch(batch: Batch) -> TrialBatch:
    return TrialBatch(rate=float(f"{batch.rate:.6g}"), cpu_ns=float(f"{batch.cpu_ns:.6g}"))


def machine() -> TrialMachine:
    """This machine, as the agent would name it; what cannot be read is unknown."""
    from hugeplan_agent.host import Host  # noqa: PLC0415 - an optional distribution
    from hugeplan_agent.machine import machine_id, node_name  # noqa: PLC0415

    host, known_id, processor = Host("/"), None, None
    with suppress(OSError):
        known_id = machine_id(host, Path("/var/lib/hugeplan-agent"))
    with suppress(OSError, IndexError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
        processor = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), None)
    return TrialMachine(
        name=node_name(host, None)[:300],
        machine_id=known_id,
        processor=processor,
        kernel=platform.release(),
        cpus=os.cpu_count(),
        memory_bytes=os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
    )


def written(arguments: argparse.Namespace, measured: Measured, about: About) -> TrialDocument:
    """Make the document, write it with its picture and text, and print one of them."""
    from hugeplan_agent.ownership import as_owner_of  # noqa: PLC0415 - an optional distribution

    document = document_of(arguments, measured, about)
    folder = Path(arguments.output or f"hugeplan-trial-{about.started:%Y%m%d-%H%M%S}-{document.id[:8]}")
    text = f"{document.sentence}\n\n{table(measured)}\n"
    made = document.model_dump_json(indent=1) + "\n"
    title = f"{about.engine} {about.version or ''} on {document.machine.name}, {about.started:%Y-%m-%d}"
    sys.stdout.write(made if arguments.json else text)  # first: minutes of measuring are not lost with the folder
    try:
        with as_owner_of(folder, make=0o755):  # who may have put links there while it was measured
            for name, content in (("json", made), ("svg", picture(measured, title)), ("txt", text)):
                (folder / f"trial.{name}").unlink(missing_ok=True)  # it may be a link or a FIFO by now
                with (folder / f"trial.{name}").open("x", encoding="utf-8") as file:
                    file.write(content)
    except OSError as error:
        raise InputError(f"--output {folder}: {error.strerror}") from error
    print(f"written: {folder}/trial.json, trial.svg, trial.txt", file=sys.stderr)
    return document
