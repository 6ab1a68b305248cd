"""What the sandbox does with a pasted list of settings."""

from __future__ import annotations

from dataclasses import asdict

from hugeplan.errors import FieldProblem, InvalidInputError
from hugeplan.recognition.pasted import read_pasted
from hugeplan.reference.schemas import PastedSettings

READ_SETTINGS = f"{__name__}:read_settings"
_EXPECTED = (
    "the answer of SHOW ALL, SELECT name, setting, unit FROM pg_settings, SHOW VARIABLES, SHOW GLOBAL VARIABLES or"
    " show parameter, or a configuration file"
)


def read_settings(text: bytes) -> bytes:
    """The PastedSettings of a text as JSON. InvalidInputError where the text is none of the forms."""
    found = read_pasted(text.decode())
    if found is None:
        problem = FieldProblem(field="text", value=None, expected=_EXPECTED)
        raise InvalidInputError(f"text is not a list of settings that is known here; expected {_EXPECTED}.", [problem])
    return PastedSettings.model_validate(asdict(found)).model_dump_json().encode()
