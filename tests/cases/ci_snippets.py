"""The workflows for GitHub and GitLab do what they say: each of their commands runs, in a system where the package is a file beside the program under test."""

import re

from harness import World, check, equal
from harness.bare import TREE, package
from harness.layered import layered
from harness.page import commands

ROOT = True
OURS = True
LIMIT = 900
FILES = ["github.yml", "gitlab.yml"]
# The page says ten lines.
MOST_LINES = 10


def run(world: World) -> None:
    page = (TREE / "docs/tasks/power-cuts.md").read_text()
    # The programs under test, as the page writes them.
    programs = [command.script() for command in commands(page) if re.match(r"[$#] cat ", command.text)]
    made = package(world)
    ran = 0
    for file in FILES:
        text = (TREE / "integrations/ci" / file).read_text()
        # A job for each block that is not indented: GitHub's file is one.
        for job in re.split(r"\n\n", text):
            lines = [line for line in job.splitlines() if not line.startswith("#")]
            check(len(lines) <= MOST_LINES, f"{file}: {len(lines)} lines")
            steps = re.findall(r"^ +- (?:run: )?((?:sudo )?(?:apt-get|/usr/share/openvsl).*)$", job, re.MULTILINE)
            equal(len(steps), 2, f"commands of a job of {file}: {job}")
            name = f"{file}-{ran}"
            layered(world, name, ['sudo() { "$@"; }', "rm /usr/bin/vsl", *programs, *steps], {made.name: made})
            ran += 1
            if "without-privilege" not in job:
                check("\n".join(lines) in page, f"docs/tasks/power-cuts.md shows another {file}")
    equal(ran, 3, "jobs")
