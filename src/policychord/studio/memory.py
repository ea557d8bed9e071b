"""Memory that compilers leave behind goes back to the system, where glibc is the C library."""

import ctypes
from contextlib import suppress

_ARENA_MAX = -8  # of mallopt: glibc keeps a heap for every thread otherwise, and gives none of them back


def share_arenas() -> None:
    """Let all threads allocate from two heaps."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").mallopt(_ARENA_MAX, 2)


def release_memory() -> None:
    """Return what is free."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)
