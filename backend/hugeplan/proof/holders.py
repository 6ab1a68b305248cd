"""Who holds huge pages: database servers by what they map, every other process by what it has touched."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from hugeplan.planner.demand import ENGINES
from hugeplan.planner.pages import counted_pages
from hugeplan.proof.matching import Server, port_of_key
from hugeplan.proof.observation import Observation


@dataclass(frozen=True, slots=True)
class Holder:
    """A server or a process with pages of one size; ``pages`` None: it has some, how many is not known."""

    name: str
    pages: int | None
    page_bytes: int
    is_server: bool = False
    key: object = None

    @property
    def text(self) -> str:
        """``python3 (PID 812, /user.slice/x) with 40 pages of 2M``."""
        return self.name if self.pages is None else f"{self.name} with {counted_pages(self.pages, self.page_bytes)}"


def called(server: Server) -> str:
    """A server as a person calls it: ``PostgreSQL on port 5432 (PID 812)``."""
    engine = str(server.get("engine"))
    title = ENGINES[engine].title if engine in ENGINES else engine
    port = server.get("port")
    port = port_of_key(str(server.get("key") or "")) if port is None else port
    return f"{title}{'' if port is None else f' on port {port}'} (PID {server.get('main_pid')})"


def holders(observed: Observation, page_bytes: int, besides: Collection[object] = ()) -> list[Holder]:
    """Everyone with pages of a size, the most first; ``besides`` are keys of servers to leave out."""
    known = observed.holders_by_size
    if page_bytes not in known:
        known[page_bytes] = sorted(_found(observed, page_bytes), key=lambda one: (-(one.pages or 0), one.name))
    return [one for one in known[page_bytes] if not one.is_server or one.key not in besides]


def _found(observed: Observation, page_bytes: int) -> Iterator[Holder]:
    servers = set()
    for server in observed.listed("databases"):
        servers.add(server.get("key"))
        own = [
            s
            for s in server.get("segments") or ()
            if s.get("page_bytes") == page_bytes and s.get("backing") == "hugetlb"
        ]
        if own:
            pages = sum(-(-int(s.get("bytes") or 0) // page_bytes) for s in own)
            yield Holder(called(server), pages, page_bytes, is_server=True, key=server.get("key"))
    for process in observed.listed("processes"):
        if process.get("database") in servers or not process.get("hugetlb_bytes"):
            continue
        mapped = [m for m in process.get("huge_page_mappings") or () if m.get("page_bytes") == page_bytes]
        if process.get("huge_page_mappings") is not None and not mapped:
            continue  # its pages are of another size
        where = "" if process.get("unit") is None else f", {process['unit']}"
        pages_held = int(process["hugetlb_bytes"]) // page_bytes if mapped else None
        yield Holder(f"{process.get('name')} (PID {process.get('pid')}{where})", pages_held, page_bytes)


def said(found: list[Holder], most: int = 5) -> str:
    """The first of them in words."""
    rest = f" and {len(found) - most} more" if len(found) > most else ""
    return ", ".join(one.text for one in found[:most]) + rest
