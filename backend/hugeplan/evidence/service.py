"""Published results and the backtest over them, read once."""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from importlib.resources import files

from hugeplan.evidence.published import published_results, validation_runs
from hugeplan.evidence.schemas import (
    Backtest,
    Evidence,
    ModelErrorClass,
    ModelErrors,
    PoolShapePoint,
    PublishedPoolShape,
    PublishedResult,
    Validation,
)
from hugeplan.planner.demand.model_error import document as model_error_document
from hugeplan.planner.evaluation.pool_shapes import PoolSeries, PoolShape, pool_shape
from hugeplan.planner.units import parse_iec_bytes


@cache
def evidence() -> Evidence:
    """The published results, in the order of the file."""
    document = published_results()
    fields = PublishedResult.model_fields.keys()
    items = [PublishedResult.model_validate({name: row[name] for name in fields}) for row in document["items"]]
    return Evidence(about=document["about"], items=items, not_found=document["not_found"])


@cache
def _pool_shape() -> PoolShape:
    """The shape of the published series over buffer pool sizes: rows that differ in the pool alone belong together."""
    points: dict[tuple[object, ...], dict[int, float]] = defaultdict(dict)
    for item in published_results()["items"]:
        if item["kind"] == "database_block_size" and item["buffer_pool"]:
            pool_bytes = parse_iec_bytes(item["buffer_pool"].replace(" ", ""), "buffer_pool")
            for value, block in ((item["value_a"], item["page_size_a"]), (item["value_b"], item["page_size_b"])):
                if isinstance(value, int | float):
                    points[item["source"], item["workload"], block][pool_bytes] = float(value)
    shape = pool_shape([PoolSeries(tuple(sorted(one.items()))) for one in points.values()])
    assert shape is not None, "published_results.json holds series over buffer pool sizes"
    return shape


def published_pool_shape(pool_bytes: int | None, working_set_bytes: int | None) -> PublishedPoolShape:
    """The published shape, and one pool on it where its working set is known."""
    shape = _pool_shape()
    here, more = None, None
    if pool_bytes is not None and working_set_bytes is not None:
        here = shape.at(pool_bytes / working_set_bytes)
        more = shape.one_more_gib(pool_bytes, working_set_bytes)
    return PublishedPoolShape(
        series=shape.series,
        band=[PoolShapePoint(share=point.share, reached=point.reached) for point in shape.band],
        knee=shape.knee,
        here=here,
        one_more_gib=more,
    )


@cache
def backtest() -> Backtest:
    """The model against the published results, as ``make schemas`` has computed it: it takes more than half a second,
    and depends on nothing but the code.
    """
    return Backtest.model_validate_json(files("hugeplan.evidence").joinpath("backtest.json").read_bytes())


@cache
def model_errors() -> ModelErrors:
    """How far the model errs, by class."""
    kept = model_error_document()
    classes = [{name: row[name] for name in ModelErrorClass.model_fields} for row in kept["classes"]]
    fields = {name: kept[name] for name in ModelErrors.model_fields if name != "classes"}
    return ModelErrors.model_validate({**fields, "classes": classes})


@cache
def validation() -> Validation:
    """The project's own validation runs."""
    return Validation.model_validate(validation_runs())
