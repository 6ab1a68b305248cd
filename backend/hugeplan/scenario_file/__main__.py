"""Prints the JSON Schema of the scenario document: ``python -m hugeplan.scenario_file > docs/scenario.schema.json``."""

import sys

from hugeplan.scenario_file.documents import schema_text

sys.stdout.write(schema_text())
