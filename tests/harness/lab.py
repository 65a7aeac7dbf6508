"""Runs of the lab, as their journals tell them."""

import json
from pathlib import Path


def journal(run: Path) -> list[dict]:
    """The lines of a run's journal that are whole; none where it has not begun."""
    path = run / "journal.jsonl"
    return [json.loads(line) for line in path.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")] if path.exists() else []


def steps(run: Path) -> list[dict]:
    """What was measured, in the order of the journal."""
    return [line for line in journal(run) if line["kind"] == "step"]
