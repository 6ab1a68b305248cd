"""Recognition of databases in containers: pure functions over what an API server says of a pod.

One engine is one file and a row in ``engines``; one operator is one file in ``operators``.
"""

from __future__ import annotations

from hugeplan.recognition.base import ContainerView, MountedFile, Objects, PodView, Recognised
from hugeplan.recognition.operators import OPERATORS, RESOURCES
from hugeplan.recognition.recognise import engine_of, may_hold_database, recognise

__all__ = [
    "OPERATORS",
    "RESOURCES",
    "ContainerView",
    "MountedFile",
    "Objects",
    "PodView",
    "Recognised",
    "engine_of",
    "may_hold_database",
    "recognise",
]
