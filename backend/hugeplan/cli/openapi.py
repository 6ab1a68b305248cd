"""``hugeplan openapi``: the OpenAPI document of the service."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from hugeplan.api.openapi import dump
from hugeplan.cli.service_settings import load_settings
from hugeplan.main import create_app


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``openapi``."""
    parser.add_argument("--output", type=Path, metavar="FILE", help="write here instead of to standard output")


def run(arguments: argparse.Namespace) -> int:
    """Print or write the document."""
    text = dump(create_app(load_settings()).openapi)
    if arguments.output is None:
        sys.stdout.write(text)
    else:
        arguments.output.write_text(text, encoding="utf-8")
    return 0
