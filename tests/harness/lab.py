"""Runs of the lab, as their journals tell them."""

import json
from pathlib import Path


def journal(run: Path) -> list[dict]:
    """The lines of a run's journal."""
    return [json.loads(line) for line in (run / "journal.jsonl").read_text().splitlines()]


def steps(run: Path) -> list[dict]:
    """What was measured, in the order of the journal."""
    return [line for line in journal(run) if line["kind"] == "step"]
