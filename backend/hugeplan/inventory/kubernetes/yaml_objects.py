"""``kubectl get -o yaml`` as the JSON that the reader takes: documents one after another, without aliases."""

from __future__ import annotations

from typing import Any, Final

import msgspec
import yaml

from hugeplan.documents.yaml_nodes import PlainLoader, shallow_events
from hugeplan.inventory.model import InventoryError

#: YAML is slow to read; kubectl writes the same objects as JSON.
BYTES_MAX: Final = 64 * 2**20
_TAG: Final = "tag:yaml.org,2002:"
#: Of YAML 1.1, and text to kubectl, which prints such values as they are.
_TEXT: Final = frozenset({f"{_TAG}timestamp", f"{_TAG}value", f"{_TAG}merge"})


class _Loader(PlainLoader):
    """Scalars as JSON has them: a time stays text."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - PyYAML's own form of the table
        first: [pair for pair in pairs if pair[0] not in _TEXT]
        for first, pairs in PlainLoader.yaml_implicit_resolvers.items()
    }

    def construct_number(self, node: Any) -> Any:
        """A number; text where it only looks like one (``0x_``), or is of base 60."""
        try:
            return super().construct_number(node)
        except ValueError:
            return self.construct_scalar(node)


for _kind in ("int", "float"):
    _Loader.add_constructor(f"{_TAG}{_kind}", _Loader.construct_number)


def json_of_yaml(data: bytes, name: str) -> bytes:
    """The documents as JSON, one after another. InventoryError for what is not YAML, or is larger than 64 MiB."""
    if len(data) > BYTES_MAX:
        raise InventoryError(f"{name} is {len(data)} bytes of YAML, more than {BYTES_MAX}: use -o json")
    try:
        # An alias multiplies what it stands for; kubectl writes none.
        if any(isinstance(event, yaml.AliasEvent) for event in shallow_events(data)):
            raise InventoryError(f"{name} has a YAML alias, which kubectl does not write: use -o json")
        documents = [one for one in yaml.load_all(data, Loader=_Loader) if one is not None]
        return b"\n".join(map(msgspec.json.encode, documents))
    except yaml.MarkedYAMLError as error:
        line = "" if error.problem_mark is None else f" in line {error.problem_mark.line + 1}"
        raise InventoryError(f"{name} is not valid YAML{line}: {error.problem}") from error
    except (yaml.YAMLError, TypeError, ValueError, RecursionError) as error:
        raise InventoryError(f"{name} cannot be read as YAML: {error}") from error
