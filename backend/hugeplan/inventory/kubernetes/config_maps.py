"""What containers take of the ConfigMaps of the input: variables, and files of engines.

Every container of a namespace may take the same one, so what a namespace takes is bounded, and the rest of its pods is
read without.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from hugeplan.inventory.kubernetes.objects import ConfigMap, ConfigMapVolume, Container, Volume, VolumeMount
from hugeplan.recognition import MountedFile
from hugeplan.recognition.config_files import MAY_CONFIGURE

#: Mounts of a container, and sources of a volume, beyond which no more are looked at.
_MOST_PARTS: Final = 256
_MOST_VARIABLES: Final = 1 << 26
_MOST_FILES: Final = 1 << 24
_PER_KEY: Final = 64
_PER_KEY_PASSED: Final = 4


class Volumes:
    """The volumes of a pod that are made of ConfigMaps, by name."""

    def __init__(self, volumes: Iterable[Volume]) -> None:
        self._of = {volume.name: _Source.of(volume) for volume in volumes}

    def of(self, name: str) -> Sequence[_Source]:
        """The ConfigMaps of one volume."""
        return self._of.get(name, ())


class _Source(NamedTuple):
    """A ConfigMap of a volume. ``paths`` are those of its keys; None: each key is its own."""

    name: str
    paths: Mapping[str, str] | None

    @classmethod
    def of(cls, volume: Volume) -> list[_Source]:
        """Those of a volume, in their order."""
        projected = (volume.projected.sources if volume.projected is not None else None) or ()
        sources: Iterable[ConfigMapVolume | None] = (volume.configMap, *(one.configMap for one in projected))
        found = [one for one in sources if one is not None][:_MOST_PARTS]
        return [cls(one.name or "", {i.key: i.path for i in one.items} if one.items else None) for one in found]


class ConfigMaps:
    """ConfigMaps by namespace and name. ``exhausted`` are the namespaces that took more than is read."""

    def __init__(self, held: Iterable[ConfigMap]) -> None:
        self._held = {(one.metadata.namespace or "default", one.metadata.name): one.data or {} for one in held}
        self._taken: dict[tuple[str, int], int] = {}
        self.exhausted: set[str] = set()

    def __len__(self) -> int:
        return len(self._held)

    def environment(self, container: Container, namespace: str) -> dict[str, str | None]:
        """Variables by name; None where the value lies in an object that the input does not hold."""
        found: dict[str, str | None] = {}
        for source in container.envFrom or ():
            held = self._get(namespace, source.configMapRef.name if source.configMapRef else None)
            if held and self._may_take(namespace, _size(held), _MOST_VARIABLES):
                found |= held
        for variable in container.env or ():
            value: str | None = variable.value or ""
            if variable.value is None and variable.valueFrom is not None:
                reference = variable.valueFrom.configMapKeyRef
                value = self._get(namespace, reference.name).get(reference.key or "") if reference else None
                if not self._may_take(namespace, _PER_KEY + len(value or ""), _MOST_VARIABLES):
                    value = None
            found[variable.name] = value
        return found

    def files(self, container: Container, namespace: str, volumes: Volumes) -> tuple[MountedFile, ...]:
        """Mounted files that an engine may read its settings from."""
        found: list[MountedFile] = []
        for mount in (container.volumeMounts or ())[:_MOST_PARTS]:
            for source in volumes.of(mount.name):
                held = self._get(namespace, source.name)
                for key, path in _paths(held, source.paths, mount):
                    size = _PER_KEY + len(held[key])
                    if MAY_CONFIGURE.search(path) and self._may_take(namespace, size, _MOST_FILES):
                        found.append(MountedFile(path=path, text=held[key], source=f"ConfigMap {source.name} {key}"))
                self._may_take(namespace, _PER_KEY_PASSED * len(held), _MOST_FILES)
        return tuple(found)

    def _get(self, namespace: str, name: str | None) -> Mapping[str, str]:
        return {} if namespace in self.exhausted else self._held.get((namespace, name or ""), {})

    def _may_take(self, namespace: str, size: int, most: int) -> bool:
        taken = self._taken.get((namespace, most), 0) + size
        self._taken[namespace, most] = taken
        if taken > most:
            self.exhausted.add(namespace)
        return taken <= most


def _size(held: Mapping[str, str]) -> int:
    return sum(_PER_KEY + len(key) + len(text) for key, text in held.items())


def _paths(held: Mapping[str, str], paths: Mapping[str, str] | None, mount: VolumeMount) -> Iterable[tuple[str, str]]:
    """Key and path of each file that a mount shows."""
    shown = ((key, key if paths is None else paths.get(key)) for key in held)
    if mount.subPath is not None:
        return ((key, mount.mountPath) for key, relative in shown if relative == mount.subPath)
    above = mount.mountPath.rstrip("/")
    return ((key, f"{above}/{relative}") for key, relative in shown if relative is not None)
