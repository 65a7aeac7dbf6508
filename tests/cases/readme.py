"""README's figures are those of this commit: its simulation, and its figures beside other servers, which docs/bench.md has."""

import re
from pathlib import Path

from harness import World, check

OURS = True
LIMIT = 300
ROOT_OF_TREE = Path(__file__).resolve().parents[2]


def run(world: World) -> None:
    text = (ROOT_OF_TREE / "README.md").read_text()
    [(command, shown)] = re.findall(r"^\$ vsl (sim .*)\n\.\.\.\n((?:.+\n)+)```", text, re.MULTILINE)
    out = world.vsl(*command.split(), timeout=LIMIT).out
    lines = [line.strip() for line in out.splitlines()]
    for line in shown.splitlines():
        check(line.strip() in lines, f"README shows '{line.strip()}', and `vsl {command}` prints:\n{out}")

    bench = (ROOT_OF_TREE / "docs" / "bench.md").read_text()
    [row] = re.findall(r"^\| randwrite 4 KiB QD32 x1 \|(.*)$", bench.split("### In memory")[0], re.MULTILINE)
    measured = {f"{float(number) * 1000:,.0f}" for number in re.findall(r"([\d.]+) k/s", row)}
    said = set(re.findall(r"\b\d{2,3},\d{3}\b", text.split("**Random writes become sequential ones**")[1].split("docs/bench.md")[0]))
    check(said <= measured and len(said) == 3, f"README says {said} of 4 KiB random writes, docs/bench.md {measured}")
