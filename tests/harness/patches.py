"""Planted defects: patches of the product, and a copy of the tree that has all of them in it, each behind a switch.

A patch may change bodies of functions only. A function that some of them change stands in the copy as

    if crate::planted::is(1) { the body with defect 1 } else if crate::planted::is(2) { ... } else { the body as it is }

so that one build has all defects. The variable OPENVSL_MUTANT names the one that a process has.
"""

import os
import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

# What the copy is built from.
COPIED = ["Cargo.toml", "Cargo.lock", "crates", "sdk", "testkit", "docs"]
SWITCH = """//! Which planted defect is on.
pub(crate) fn is(number: usize) -> bool {{
    static ON: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
    *ON.get_or_init(|| match std::env::var("OPENVSL_MUTANT").as_deref() {{
{arms}
        _ => 0,
    }}) == number
}}
"""


class Misfit(Exception):
    """A patch does not fit the tree."""


@dataclass
class Change:
    """Lines that a patch replaces."""

    file: str
    line: int
    before: list[str]
    after: list[str]
    # Lines of context in front of what differs.
    lead: int = 0

    def place(self, lines: list[str]) -> range:
        """Which lines of the file are replaced: those next to where the patch expects them."""
        size = len(self.before)
        found = [at for at in range(len(lines) - size + 1) if lines[at : at + size] == self.before]
        if not found:
            raise Misfit(f"{self.file}: nothing there is as the patch has it around line {self.line}")
        at = min(found, key=lambda at: abs(at + 1 - self.line))
        return range(at, at + size)


@dataclass
class Patch:
    """A planted defect: what it is, the suite that finds it, and what it changes."""

    name: str
    what: str
    suite: str
    changes: list[Change] = field(default_factory=list)


@dataclass
class Function:
    """A function of a file: its lines, and the first one of its body."""

    begin: int
    body: int
    end: int
    defects: dict[str, list[Change]] = field(default_factory=dict)


def patches(root: Path) -> list[Patch]:
    """All of them, by name."""
    return [read(path) for path in sorted(root.glob("testkit/planted/*.patch"))]


def read(path: Path) -> Patch:
    """A patch in the unified format, with two lines of text at its head."""
    what, suite, _, *lines = path.read_text().splitlines()
    patch = Patch(path.stem, what, suite.removeprefix("Found by: "))
    file = ""
    for line in lines:
        if line.startswith("+++ b/"):
            file = line.removeprefix("+++ b/")
        elif line.startswith("@@ -"):
            patch.changes.append(Change(file, int(re.match(r"@@ -(\d+)", line)[1]), [], []))
        elif patch.changes and line[:1] in ("+", "-", " ", "") and not line.startswith("--- a/"):
            sides = {"+": ["after"], "-": ["before"]}.get(line[:1], ["before", "after"])
            for side in sides:
                getattr(patch.changes[-1], side).append(line[1:])
    for change in patch.changes:
        same = [old == new for old, new in zip(change.before, change.after)]
        change.lead = same.index(False) if False in same else len(same)
    return patch


def broken(root: Path, planted: Iterable[Patch]) -> list[str]:
    """What is wrong with patches: those that do not fit the tree."""
    faults = []
    for patch in planted:
        try:
            grouped(root, [patch])
        except Misfit as fault:
            faults.append(f"testkit/planted/{patch.name}.patch: {fault}")
    return faults


def grouped(root: Path, planted: Iterable[Patch]) -> dict[str, tuple[list[str], list[Function]]]:
    """Every file that is patched: its lines, and the functions that are."""
    files: dict[str, tuple[list[str], list[Function]]] = {}
    for patch in planted:
        for change in patch.changes:
            path = root / change.file
            if change.file not in files:
                if not path.exists():
                    raise Misfit(f"{change.file}: there is no such file")
                files[change.file] = (path.read_text().splitlines(), [])
            lines, functions = files[change.file]
            first = change.place(lines)[0] + change.lead
            function = next((other for other in functions if other.begin <= first <= other.end), None)
            if function is None:
                function = around(lines, first, change)
                functions.append(function)
            if first < function.body:
                raise Misfit(f"{change.file}:{first + 1}: only bodies of functions can be changed")
            function.defects.setdefault(patch.name, []).append(change)
    return files


def around(lines: list[str], at: int, change: Change) -> Function:
    """The function that a line belongs to. The code is formatted: a function ends with a brace below its first word."""
    for begin in range(at, -1, -1):
        head = re.match(r"( *)(?:pub(?:\([\w: ]+\))? )?(?:const )?(?:async )?(?:unsafe )?fn \w", lines[begin])
        if head is None:
            continue
        if lines[begin].endswith("}"):
            continue
        closing = head[1] + "}"
        end = next((number for number in range(begin, len(lines)) if lines[number] == closing), -1)
        if end >= at:
            body = next(number for number in range(begin, end) if lines[number].endswith("{")) + 1
            return Function(begin, body, end)
    raise Misfit(f"{change.file}:{at + 1}: this is in no function")


def switched(lines: list[str], function: Function, numbers: dict[str, int]) -> list[str]:
    """The body of a function, with every defect behind its switch."""
    indent = " " * (len(lines[function.end]) - 1 + 4)
    made = []
    for name, changes in function.defects.items():
        body = list(lines)
        spans = sorted(((change.place(lines), change) for change in changes), key=lambda span: span[0][0], reverse=True)
        for span, change in spans:
            body[span[0] : span[-1] + 1] = change.after
        longer = len(body) - len(lines)
        made += [f"{indent}if crate::planted::is({numbers[name]}) {{", *body[function.body : function.end + longer], f"{indent}}} else"]
    return [*made, f"{indent}{{", *lines[function.body : function.end], f"{indent}}}"]


def plant(root: Path, copy: Path, planted: list[Patch]) -> None:
    """Makes the copy, or brings it up to date. Files that stay as they are keep their times: cargo builds only what changed."""
    numbers = {patch.name: number for number, patch in enumerate(planted, 1)}
    made: dict[Path, str] = {}
    crates: dict[str, set[str]] = {}
    for file, (lines, functions) in grouped(root, planted).items():
        for function in sorted(functions, key=lambda function: function.begin, reverse=True):
            crates.setdefault(file.split("/src/")[0], set()).update(function.defects)
            lines[function.body : function.end] = switched(lines, function, numbers)
        made[Path(file)] = "\n".join(lines) + "\n"
    for crate, names in crates.items():
        root_file = Path(crate) / "src/lib.rs"
        made[root_file] = made.get(root_file, (root / root_file).read_text()) + "\nmod planted;\n"
        arms = "\n".join(f'        Ok("{name}") => {numbers[name]},' for name in sorted(names))
        made[Path(crate) / "src/planted.rs"] = SWITCH.format(arms=arms)
    wanted = set(made)
    for top in COPIED:
        for path in [root / top] if (root / top).is_file() else (root / top).rglob("*"):
            if path.is_file():
                wanted.add(path.relative_to(root))
    for path in wanted:
        target = copy / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if path in made:
            if not target.exists() or target.read_text() != made[path]:
                target.write_text(made[path])
        elif not target.exists() or os.stat(target).st_mtime_ns != os.stat(root / path).st_mtime_ns:
            shutil.copy2(root / path, target)
    # In reverse order: a folder comes behind what lies in it, and without its files it would still count as a crate.
    for path in sorted(copy.rglob("*"), reverse=True):
        if path.is_dir():
            if not any(path.iterdir()):
                path.rmdir()
        elif path.relative_to(copy) not in wanted:
            path.unlink()
