"""Reports as text, JSON and SARIF."""

from hugeplan.lint.output.json_report import as_json
from hugeplan.lint.output.sarif import as_sarif
from hugeplan.lint.output.text import as_text

__all__ = ["as_json", "as_sarif", "as_text"]
