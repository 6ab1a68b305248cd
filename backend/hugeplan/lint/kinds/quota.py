"""ResourceQuota and LimitRange: the names that huge pages have there."""

from __future__ import annotations

import re
from typing import Final

from hugeplan.lint.kinds.quantities import read_quantities
from hugeplan.lint.model import Context, Notes, Reading, wrong
from hugeplan.lint.yaml_tree import Tree

KIND: Final = "quota"
QUOTA_NAME: Final = wrong(
    "quota-name",
    "A quota counts huge pages as hugepages-<size> or requests.hugepages-<size>; limits.hugepages does not exist.",
    "kubernetes docs, Resource Quotas; pkg/apis/core/helper standardQuotaResources",
)
RANGE: Final = wrong(
    "limitrange-default-differs",
    "A LimitRange's default and defaultRequest of huge pages must be equal, as a pod's limit and request must be.",
    "kubernetes pkg/apis/core/validation/validation.go ValidateLimitRange(), Manage HugePages",
)


def read(document: Tree, context: Context) -> Reading:
    """The names and the whole pages."""
    notes = Notes()
    if document.get_text("kind") == "ResourceQuota":
        hard = document.get("spec", "hard")
        for name, tree in () if hard is None else hard.items():
            found = re.fullmatch(r"limits\.(hugepages-\S+)", name)
            if found:
                said = f"{name} is not a quota: the API server refuses it."
                notes.rewrite(QUOTA_NAME, tree.key, name, said, f"requests.{found[1]}")
        read_quantities(hard, notes, context)
        read_quantities(hard, notes, context, "requests.")
        return notes.reading(KIND, "ResourceQuota")
    limits = document.get("spec", "limits")
    for item in () if limits is None else limits.elements():
        default = read_quantities(item.get("default"), notes, context)
        request = read_quantities(item.get("defaultRequest"), notes, context)
        for name in default.keys() & request.keys():
            if default[name].bytes != request[name].bytes:
                tree = request[name].tree
                text = default[name].tree.text or ""
                said = f"defaultRequest {tree.text} is not default {text}."
                notes.rewrite(RANGE, tree, f"{name}: {tree.text}", said, text, fix=f"Write {text} in both.")
    return notes.reading(KIND, "LimitRange")
