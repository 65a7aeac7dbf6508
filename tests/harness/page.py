"""Commands that a page shows, taken apart to be run."""

import re
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache

from harness.bare import TREE

# What is run in the source tree.
IN_TREE = ("make ", "run/vsl ", "install ", "cargo ", "examples/", "tests/")


@dataclass
class Command:
    """A command of a page, and the lines that the page shows below it."""

    text: str
    shown: list[str] = field(default_factory=list)

    def script(self) -> str:
        """How it is run: a file whose content is shown is made, and what is shown to fail must fail."""
        if (file := re.fullmatch(r"[$#] cat (\S+)", self.text)) and self.shown:
            return f"printf '%s\\n' {shlex.join(self.shown)} >{file[1]}"
        if self.shown and re.match(r"error:|nbdinfo: \w+:", self.shown[0]):
            return f"if {self.text[2:]}\nthen echo 'it is shown to fail'; exit 1; fi"
        # A comment may end the command.
        return f"(cd {TREE} && {self.text[2:]}\n)" if self.text[2:].startswith(IN_TREE) else self.text[2:]


@cache
def goes_on(command: str) -> bool:
    """Whether a shell waits for more of it: a loop's end, the rest of a line, of a quoted text or of a here-document."""
    said = subprocess.run(["bash", "-n"], input=command, text=True, capture_output=True).stderr
    return command.endswith("\\") or any(what in said for what in ("unexpected end of file", "unexpected EOF", "here-document"))


def commands(text: str) -> Iterator[Command]:
    """Those of a page, in their order."""
    for block in re.findall(r"^```console\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        command = None
        for line in block.splitlines():
            if command and goes_on(command.text[2:]):
                command.text += "\n" + line
            elif re.match(r"[$#] \S", line):
                if command:
                    yield command
                command = Command(line)
            elif command and line:
                command.shown.append(line)
        if command:
            yield command
