"""Redirects an imported function of a loaded library (its GOT entry, 64-bit ELF).

libfaketime converts the deadlines of ``pthread_cond_timedwait`` to true time. librdkafka waits with
C11's ``cnd_timedwait``, which libfaketime does not know: if the clock is ahead, it would wait for
days. In glibc both functions take the same objects, and librdkafka only checks for success.
"""

from __future__ import annotations

import ctypes
import mmap
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PAGE: Final = mmap.PAGESIZE
RELA: Final = 4
DYNSYM: Final = 11
MAPS: Final = Path("/proc/self/maps")


@dataclass(frozen=True, slots=True)
class _Section:
    kind: int
    offset: int
    size: int
    link: int


def rebind(library: str, name: str, function: int) -> None:
    """Let a library call ``function`` (an address) instead of ``name``.

    Raises LookupError if it is not loaded or does not import ``name``.
    """
    path, base = _loaded(library)
    places = [base + offset for offset in _slots(path.read_bytes(), name.encode())]
    if not places:
        raise LookupError(f"{path.name} does not import {name}")
    for place in places:
        _write(place, function)


def _loaded(library: str) -> tuple[Path, int]:
    """Return the file of a loaded library and its base address."""
    for line in MAPS.read_text().splitlines():
        fields = line.split(maxsplit=5)
        if len(fields) == 6 and Path(fields[5]).name.startswith(library):
            return Path(fields[5]), int(fields[0].partition("-")[0], 16)
    raise LookupError(f"{library} is not loaded")


def _slots(elf: bytes, name: bytes) -> Iterator[int]:
    """Yield the offsets of the table entries for an imported name."""
    sections = list(_sections(elf))
    for section in sections:
        symbols = sections[section.link] if section.kind == RELA else None
        if symbols is None or symbols.kind != DYNSYM:
            continue
        names = sections[symbols.link].offset
        table = elf[section.offset : section.offset + section.size]
        for offset, info, _ in struct.iter_unpack("<QQq", table):
            (at,) = struct.unpack_from("<I", elf, symbols.offset + (info >> 32) * 24)
            if elf.startswith(name + b"\0", names + at):
                yield offset


def _sections(elf: bytes) -> Iterator[_Section]:
    (table,) = struct.unpack_from("<Q", elf, 40)
    size, count = struct.unpack_from("<HH", elf, 58)
    for number in range(count):
        fields = struct.unpack_from("<IIQQQQI", elf, table + number * size)
        yield _Section(kind=fields[1], offset=fields[4], size=fields[5], link=fields[6])


def _write(place: int, address: int) -> None:
    """Write an address into a table that may be read-only."""
    libc = ctypes.CDLL(None, use_errno=True)
    page = place - place % PAGE
    protection = mmap.PROT_READ | mmap.PROT_WRITE
    if libc.mprotect(ctypes.c_void_p(page), ctypes.c_size_t(PAGE), protection):
        raise OSError(ctypes.get_errno(), "mprotect")
    ctypes.c_void_p.from_address(place).value = address
