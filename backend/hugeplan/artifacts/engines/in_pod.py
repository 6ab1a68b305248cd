"""An engine's file where the engine runs in a pod: a ConfigMap, not a file on the node; commands inside the pod.

``kubectl exec`` takes ``statefulset/NAME`` and picks one of its pods. Source: kubectl reference, ``exec`` and
``create configmap``.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace

from hugeplan.artifacts.base import Artifact, GivesBack, left_as_comments, object_name, slug
from hugeplan.artifacts.owners import settings_field
from hugeplan.planner.model import DatabaseInstance, InstancePlan
from hugeplan.recognition.operators import owner

#: Files that the engine does not read when it starts: a program in the container takes them once.
_TAKEN_BY = {"oracle_parameters": "sqlplus / as sysdba", "db2_settings": "env DB=name sh -s"}
#: What commands in the container need first. Its shell is often root's; PostgreSQL's role is ``postgres`` unless the
#: image says otherwise. Db2's commands use ``$DB``: the reader writes the name of the database in place of ``name``.
_BEFORE = {"postgresql_conf": 'export PGUSER="${PGUSER:-postgres}"; ', "db2_settings": "DB=name; "}


@dataclass(frozen=True, slots=True)
class PodNames:
    """How kubectl names the StatefulSet and the container of an instance."""

    stateful_set: str
    namespace: str
    container: str

    @property
    def in_namespace(self) -> str:
        """``--namespace NAME`` with a blank before it, or nothing."""
        return f" --namespace {self.namespace}" if self.namespace else ""

    @property
    def exec(self) -> str:
        """The start of a command that runs in the container."""
        return f"kubectl exec{self.in_namespace} statefulset/{self.stateful_set} --container {self.container}"


def pod_names(instance: DatabaseInstance) -> PodNames:
    """The Kubernetes objects that an instance runs in, or placeholders that no object and no container can be named."""
    namespace, _, name = (instance.stateful_set or "NAMESPACE/STATEFULSET_NAME").rpartition("/")
    return PodNames(name, namespace, instance.container or "CONTAINER_NAME")


def in_pod(artifact: Artifact, instance: DatabaseInstance, planned: InstancePlan) -> Artifact:
    """The same file with commands that act on the pod; nothing is written to the node."""
    found = instance.operator_object
    if found is not None:
        return replace(
            artifact,
            path=None,
            install=f"# write its settings into {settings_field(found)}: its operator undoes what is changed in a pod",
            verify=f"# in a pod of {found.words}, container {instance.container or 'of the database'}:\n"
            + left_as_comments(artifact.verify),
            rollback=f"# take the settings out of {settings_field(found)} again",
            avoid_when="The operator's version has another field for them.",
        )
    if planned.page_bytes is None and isinstance(artifact, GivesBack):
        summary = f"{artifact.summary} Then take its hugepages limits out: a node without the pages takes no such pod."
        artifact = replace(artifact, summary=summary)
    names, is_known = pod_names(instance), owner(instance) is not None
    avoid_when = "An operator makes the pod: use its custom resource."
    restart = f"kubectl rollout restart{names.in_namespace} statefulset/{names.stateful_set}"
    before = next((text for kind, text in _BEFORE.items() if artifact.kind.startswith(kind)), "")
    program = next((run for kind, run in _TAKEN_BY.items() if artifact.kind.startswith(kind)), None)
    if program is not None:
        install = f"{names.exec} --stdin -- {program} < {artifact.filename}\n{restart}"
        rollback = f"{names.exec} -- sh -c {shlex.quote(before + artifact.rollback)}\n{restart}"
    elif artifact.install.startswith("#"):
        return artifact
    else:  # one ConfigMap for all pods of the set, whatever the plan of each calls it
        key = artifact.filename.replace(slug(planned.name), "hugeplan", 1)
        own = "/".join((names.namespace, names.stateful_set, names.container, key))
        config_map = f"configmap {object_name(own) if is_known else 'CONFIGMAP_NAME'}{names.in_namespace}"
        where = (artifact.path or "a path that its start command names").replace(artifact.filename, key)
        install = (
            f"kubectl create {config_map} --from-file={key}={artifact.filename}"
            " --dry-run=client --output yaml | kubectl apply --filename -\n"
            f"# mount it into container {names.container} ({where}), or add its lines to the file that is mounted"
            f" there; then:\n{restart}"
        )
        rollback = f"# take the mount or the lines away again; then:\n{restart}\nkubectl delete {config_map}"
        avoid_when += " Or a pod of the same StatefulSet is planned with other settings: the last file counts for all."
    verify = f"{names.exec} -- sh -c {shlex.quote(before + artifact.verify)}"
    if not is_known:
        said = "# what makes its pods is not known, or which container: put the names in, then run these lines\n"
        install, verify, rollback = (said + left_as_comments(each) for each in (install, verify, rollback))
    return replace(artifact, path=None, install=install, verify=verify, rollback=rollback, avoid_when=avoid_when)
