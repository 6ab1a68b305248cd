"""Which object of the cluster makes an instance's pods, and so which one a patch is written for.

Exactly one file patches: the operator's object where one is known, else the StatefulSet where that is known. Where
neither is, nothing is written that could be applied: an object named by a guess would be made anew.
"""

from __future__ import annotations

from hugeplan.planner.model import DatabaseInstance, OperatorObject
from hugeplan.recognition.base import CustomResource, Patch
from hugeplan.recognition.operators import RESOURCES


def patched(instance: DatabaseInstance) -> tuple[OperatorObject, CustomResource, Patch] | None:
    """The operator's object of an instance and how it is patched.

    None where the object is not known, where the table has no patch for its kind, and where it holds several sets and
    the instance's is not known: a patch that names a set which is not there makes one.
    """
    found = instance.operator_object
    row, operator = (None, None) if found is None else RESOURCES.get((found.group, found.kind), (None, None))
    if found is None or row is None or operator is None or row.patch is None or operator.engine != instance.engine:
        return None
    return None if row.sets and found.instance_set is None else (found, row, row.patch)


def limits_field(found: OperatorObject) -> str:
    """Where the limits go in an operator's object, in words: its field where the table knows it."""
    row, _ = RESOURCES.get((found.group, found.kind), (None, None))
    field = None if row is None else row.limits_in
    return f"{field or 'the resources of the database container'} of {found.words}"


def settings_field(found: OperatorObject) -> str:
    """Where settings go in an operator's object, in words: its field where the table knows it."""
    row, _ = RESOURCES.get((found.group, found.kind), (None, None))
    field = () if row is None else row.option_file or row.parameters
    if row is not None and row.settings_words is not None:
        return f"{row.settings_words} of {found.words}"
    return f"{'.'.join(('spec', *field)) if field else 'the settings'} of {found.words}"


def saved_once(get: str, file: str) -> str:
    """Commands up to the next one: what an object was before the first install. With the version that it had then, the
    API server would refuse it; restored, the file goes, so that the next install saves anew.
    """
    return f"test -s {file} || {get} -o yaml | sed '/^  resourceVersion:/d' > {file} && test -s {file} &&\n"
