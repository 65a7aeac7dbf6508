"""Checks that say what was found."""

from typing import Any


class Failed(Exception):
    """A check that did not hold."""


def check(holds: object, otherwise: str) -> None:
    """Fails with the given words unless `holds`."""
    if not holds:
        raise Failed(otherwise)


def equal(found: Any, expected: Any, what: str) -> None:
    """Fails unless both are the same, and shows them (shortened: some are megabytes of data)."""
    if found != expected:
        raise Failed(f"{what}: found {_short(found)}, expected {_short(expected)}")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 400 else f"{text[:400]}… ({len(value)} long)"
