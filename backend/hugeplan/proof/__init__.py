"""Is the plan in force? Planned against real, as tri-state checks over one observation of the node.

An observation is the ``inventory`` and the ``sample`` of an agent's report: on the node they come from the agent's
collectors at this moment, in the service from the newest report. Both give the same verdict. Pure: nothing is read.
"""

from hugeplan.proof.observation import Observation
from hugeplan.proof.verdict import Verdict, verify

__all__ = ["Observation", "Verdict", "verify"]
