"""Who holds huge pages: database servers by what they map, every other process by what it has touched, and files on
hugetlbfs and SysV segments that were left without a process.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from hugeplan.planner.demand import ENGINES
from hugeplan.planner.observation.server_owners import port_of_key
from hugeplan.planner.pages import counted_pages
from hugeplan.planner.printable import printable
from hugeplan.proof.matching import Server
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


@dataclass(frozen=True, slots=True)
class Holders:
    """Everyone with pages of one size, the most first; counted once, as every pool and every server that is short asks.

    ``pages``: the sum of those that are known. ``all_known``: whether all are. ``of_server``: a server's, by its key.
    """

    everyone: tuple[Holder, ...]
    pages: int
    all_known: bool
    of_server: Mapping[object, Sequence[Holder]]

    def said(self, besides: Sequence[Holder] = (), most: int = 5) -> str:
        """The first of them in words, without some of ``of_server``; empty where there is none."""
        out = {id(one) for one in besides}  # of 256 servers with one key each was compared with each
        first = list(islice((one for one in self.everyone if id(one) not in out), most))
        left = len(self.everyone) - len(besides) - len(first)
        return ", ".join(one.text for one in first) + (f" and {left} more" if left else "")


def holders(observed: Observation, page_bytes: int) -> Holders:
    """Everyone with pages of a size."""
    known: dict[int, Holders] = observed.holders_by_size
    if page_bytes not in known:
        found = list(_found(observed, page_bytes))
        found += _without_process(observed, page_bytes, sum(one.pages or 0 for one in found))
        of_server: dict[object, list[Holder]] = {}
        for one in found:
            if one.is_server:
                of_server.setdefault(one.key, []).append(one)
        known[page_bytes] = Holders(
            everyone=tuple(sorted(found, key=lambda one: (-(one.pages or 0), one.name))),
            pages=sum(one.pages or 0 for one in found),
            all_known=all(one.pages is not None for one in found),
            of_server=of_server,
        )
    return known[page_bytes]


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


def _without_process(observed: Observation, page_bytes: int, of_processes: int) -> Iterator[Holder]:
    """Files that nothing maps, then segments that nothing has attached.

    A segment may be of base pages: it is named only while it is a whole number of pages that the pool lacks and that
    nobody else holds.
    """
    left = of_processes
    for file in observed.listed("huge_page_files"):
        if file.get("page_bytes") == page_bytes:
            left += int(file["pages"])
            name = f"the file {printable(str(file['path']))}, which no process read here maps,"
            yield Holder(name, int(file["pages"]), page_bytes)
    pool = observed.global_pool(page_bytes) or {}
    total, free = pool.get("nr_hugepages"), pool.get("free_hugepages")
    if total is None or free is None:
        return
    left = int(total) - int(free) - left
    base = int(observed.inventory.get("base_page_bytes") or 4096)
    segments = [(_pages_of(one, page_bytes, base), one["id"]) for one in observed.listed("sysv_segments")]
    for pages, number in sorted(segments, reverse=True):
        if 0 < pages <= left:
            left -= pages
            name = f"the SysV segment {number}, which no process has attached (ipcrm -m {number} removes it),"
            yield Holder(name, pages, page_bytes)


def _pages_of(segment: Mapping[str, Any], page_bytes: int, base_bytes: int) -> int:
    """Pages of one size that a segment may hold; 0 where it holds none of them, or a part of one.

    Kernels that count a file's pages in base pages (since 6.7) report page_bytes / base_bytes times what is resident:
    ipc/shm.c shm_add_rss_swap() goes on multiplying. No segment of base pages is larger than itself.
    """
    resident, most = int(segment["resident_bytes"]), -(-int(segment["bytes"]) // page_bytes)
    for one in (page_bytes, page_bytes * (page_bytes // base_bytes)):
        pages, rest = divmod(resident, one)
        if not rest and 0 < pages <= most:
            return pages
    return 0
