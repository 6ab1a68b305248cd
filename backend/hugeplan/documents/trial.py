"""What ``hugeplan trial`` writes: one measured comparison of page sizes, with every pair of batches in it."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from hugeplan.documents.bounds import Moment

FORMAT: Final = "hugeplan-trial"
MAX_BLOCKS: Final = 2000
MAX_PAIRS: Final = 200
Share = Annotated[float, Field(ge=0.0, le=1.0)]
Positive = Annotated[float, Field(gt=0.0, lt=1e15, allow_inf_nan=False)]
Percent = Annotated[float, Field(ge=-100.0, le=1e6, allow_inf_nan=False)]
Text = Annotated[str, Field(max_length=300)]
Count = Annotated[int, Field(ge=0, lt=2**63)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class TrialStatus(StrEnum):
    """What a page size's figure is worth."""

    MEASURED = "measured"
    TOO_NOISY = "too_noisy"
    SKIPPED = "skipped"


class TrialMachine(_Model):
    """Where it was measured. ``machine_id`` is the agent's: null where no agent runs."""

    name: Text
    machine_id: Annotated[str, Field(max_length=64)] | None = None
    processor: Text | None = None
    kernel: Text | None = None
    cpus: Annotated[int, Field(ge=1, lt=100_000)] | None = None
    memory_bytes: Count | None = None


class TrialShape(_Model):
    """What was done: null where it does not apply, as a row of a program that has none."""

    operation_class: Text | None = Field(None, description="key_lookup, script (the user's own) or program")
    row_bytes: Count | None = None
    data_bytes: Count | None = None
    pool_bytes: Count | None = None
    clients: Count | None = None
    base_command: Annotated[str, Field(max_length=2000)] | None = None


class MeasuredGain(_Model):
    """A gain in per cent over base pages: +5 is five per cent more work per CPU second (or per second)."""

    likely: Percent
    low: Percent | None = Field(description="lower end of the 95 % interval; null while there are too few blocks")
    high: Percent | None = Field(description="upper end of the 95 % interval; null while there are too few blocks")


class TrialBatch(_Model):
    """Operations per second, and nanoseconds of CPU time per operation."""

    rate: Positive
    cpu_ns: Positive


class TrialPair(_Model):
    """One batch on base pages and one on the other, in turns."""

    base: TrialBatch
    other: TrialBatch


class TrialBlock(_Model):
    """The pairs of one start of both sides. ``others_share``: share of the CPUs that other work took before it."""

    swapped: bool
    seconds: Annotated[float, Field(ge=0.0, lt=1e7)]
    others_share: Share | None = None
    pairs: Annotated[tuple[TrialPair, ...], Field(max_length=MAX_PAIRS)]


class TrialPageSize(_Model):
    """One page size against base pages; ``equal`` is base pages against base pages, the noise floor."""

    page_size: Literal["equal", "2M", "1G", "thp", "huge"]
    page_bytes: Count | None = Field(None, description="null where the trial does not know it, as for a command")
    status: TrialStatus
    reason: Text | None = None
    gain: MeasuredGain | None = None
    blocks: Annotated[tuple[TrialBlock, ...], Field(max_length=MAX_BLOCKS)] = ()


class TrialDocument(_Model):
    """The whole trial."""

    format: Literal["hugeplan-trial"] = FORMAT
    schema_version: Literal[1] = 1
    id: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
    started_at: Moment
    seconds: Annotated[float, Field(ge=0.0, lt=1e7)]
    stopped: Literal["narrow", "time", "interrupted"]
    machine: TrialMachine
    engine: Text = Field(description="postgresql, mariadb, jvm or command")
    version: Text | None = None
    shape: TrialShape
    measure: Literal["cpu_per_operation", "rate"]
    metric: Text | None = Field(None, description="what the rate counts, where it is not operations")
    others_share: Share | None = Field(None, description="mean share of the CPUs that other work took between blocks")
    priority: Literal["idle", "normal", "high"]
    seed: Count
    sentence: Annotated[str, Field(max_length=4000)]
    page_sizes: Annotated[tuple[TrialPageSize, ...], Field(min_length=1, max_length=8)]
