"""Db2: one engine process per instance; its configuration is binary and read by its own tools only."""

from __future__ import annotations

from hugeplan_agent.collectors.engines.base import Engine, no_settings

ENGINE = Engine("db2", frozenset({"db2sysc"}), no_settings, shares_segment=True)
