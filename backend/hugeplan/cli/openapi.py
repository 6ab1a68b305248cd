"""``hugeplan openapi``: the OpenAPI document of the service."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from hugeplan.api.openapi import dump
from hugeplan.cli import InputError
from hugeplan.cli.files import write_file
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
        try:
            write_file(arguments.output, text.encode())
        except OSError as error:
            raise InputError(f"--output {arguments.output}: {error.strerror}") from error
    return 0
