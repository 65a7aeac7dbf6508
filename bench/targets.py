"""What is asked of a measurement, and whether it was reached."""

from dataclasses import dataclass


@dataclass
class Target:
    """One figure that is asked for, beside what was measured at its worst."""

    what: str
    asked: str
    worst: str  # the job that was furthest from it
    figure: float
    met: bool


def at_least(what: str, least: float, found: dict[str, float]) -> Target:
    """The smallest of some figures, by job, must reach a bound."""
    worst = min(found, key=found.__getitem__)
    return Target(what, f"≥ {least:g}", worst, found[worst], found[worst] >= least)


def at_most(what: str, most: float, found: dict[str, float]) -> Target:
    """The largest of some figures, by job, must keep a bound."""
    worst = max(found, key=found.__getitem__)
    return Target(what, f"≤ {most:g}", worst, found[worst], found[worst] <= most)


def targets_table(targets: list[Target]) -> str:
    """All of them, with those that were missed in bold."""
    lines = ["| target | asked | worst job | reached | |", "|---|---:|---|---:|---|"]
    lines += [f"| {one.what} | {one.asked} | {one.worst} | {one.figure:.2f} | {'met' if one.met else '**missed**'} |" for one in targets]
    return "\n".join(lines)
