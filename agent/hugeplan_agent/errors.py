"""What can go wrong on a node, each as one sentence that a person can act on.

AgentError
├── ConfigurationError   a flag, an environment variable or a token file
├── CollectError         nothing worth sending could be read
├── MeasureError         tlbbench did not give a document
└── SpoolError           the spool folder cannot be used
NoData                   a collector's word for "this machine has no such thing"; never an error
"""

from __future__ import annotations


class AgentError(Exception):
    """One sentence for the terminal; the exit status is 1."""


class ConfigurationError(AgentError):
    """A flag, an environment variable or a file of the user's is wrong; the exit status is 2."""


class CollectError(AgentError):
    """The state of the node cannot be read."""


class MeasureError(AgentError):
    """The benchmark gave no document."""


class SpoolError(AgentError):
    """The spool folder cannot be read or written."""


class NoData(Exception):  # noqa: N818 - absence is not an error, and its name must not say so
    """The kernel or the machine does not have what a collector looks for."""
