"""A real Kubernetes for tests: an API server alone, or a whole node.

Used by the tests of deploy and backend, whose pytest settings put ``deploy/kubernetes`` on the path:
``from rig.control_plane import ControlPlane``. Nothing of this is installed with hugeplan.
"""
