#!/usr/bin/env python3
"""Holds the pages against the code wherever the code knows the fact: lengths, links, paths, lists and numbers."""

import csv
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
# Written by a command, which decides their form.
WRITTEN = {"docs/bench.md", "docs/soak.md", "docs/simulation-speed.md"}
# Made by a build: not there in a tree that was just cloned.
BUILT = {"console/dist"}
COLUMNS = 100
# Lines of README, bytes of ARCHITECTURE.
README_LINES, ARCHITECTURE_BYTES = 150, 20_000


def read(path: str) -> str:
    """A file of the tree."""
    return (ROOT / path).read_text()


def prose(text: str) -> Iterator[tuple[int, str]]:
    """The lines of a page outside of code."""
    code = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith(("```", "~~~")):
            code = not code
        elif not code:
            yield number, line


def anchors(text: str) -> set[str]:
    """What links into a page may name."""
    headings = [line.lstrip("#").strip() for _, line in prose(text) if re.match(r"#+ ", line)]
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def lengths() -> Iterator[str]:
    if len(read("README.md").splitlines()) > README_LINES:
        yield f"README.md: {len(read('README.md').splitlines())} lines; expected {README_LINES} at most"
    if len(read("ARCHITECTURE.md").encode()) > ARCHITECTURE_BYTES:
        yield f"ARCHITECTURE.md: {len(read('ARCHITECTURE.md').encode())} bytes; expected {ARCHITECTURE_BYTES} at most"
    for page in PAGES:
        name = str(page.relative_to(ROOT))
        for number, line in prose(page.read_text()) if name not in WRITTEN else ():
            # Tables, links and code in a line cannot be broken.
            if len(line) > COLUMNS and not line.startswith(("|", "#")) and not re.search(r"\]\(|`[^`]{40,}", line):
                yield f"{name}:{number}: {len(line)} columns; expected {COLUMNS} at most"


def links() -> Iterator[str]:
    for page in PAGES:
        name = page.relative_to(ROOT)
        for number, line in prose(page.read_text()):
            for target in re.findall(r"\]\(([^)\s]+)\)", line):
                if re.match(r"[a-z]+:", target):
                    continue
                path, _, anchor = target.partition("#")
                file = (page.parent / path) if path else page
                if not file.exists():
                    yield f"{name}:{number}: {target}: there is no such file"
                elif anchor and file.suffix == ".md" and anchor not in anchors(file.read_text()):
                    yield f"{name}:{number}: {target}: there is no such heading"


def paths() -> Iterator[str]:
    """Files of the tree that pages name."""
    for page in PAGES:
        for number, line in prose(page.read_text()):
            for path in re.findall(r"`((?:crates|testkit|tests|console|bench|scripts|packaging|docs)/[\w./-]+)`", line):
                if not (ROOT / path).exists() and path not in BUILT and not re.search(r"[A-Z]{4}", path):
                    yield f"{page.relative_to(ROOT)}:{number}: `{path}`: there is no such file"


def summary() -> Iterator[str]:
    """Every page of the book is in its table of contents."""
    listed = set(re.findall(r"\(([\w./-]+\.md)\)", read("docs/SUMMARY.md")))
    for page in ROOT.glob("docs/**/*.md"):
        name = str(page.relative_to(ROOT / "docs"))
        if name not in listed and name != "SUMMARY.md":
            yield f"docs/SUMMARY.md: {name} is not listed"


def typed() -> Iterator[str]:
    """Commands stand behind a prompt, on pages whose commands a case runs."""
    cases = "".join(path.read_text() for path in ROOT.glob("tests/cases/*_commands.py"))
    run = {(ROOT / "docs" / name).resolve() for name in re.findall(r'"([\w./-]+\.md)"', cases)} | set(ROOT.glob("docs/tasks/*.md"))
    for page in PAGES:
        name = page.relative_to(ROOT)
        for kind, block in re.findall(r"^```(.*)\n((?:.*\n)*?)```$", page.read_text(), re.MULTILINE):
            if kind == "console":
                if page not in run:
                    yield f"{name}: shows commands, and no case of tests/cases/*_commands.py runs them"
                if not re.match(r"[$#] ", block):
                    yield f"{name}: '{block.splitlines()[0]}': expected '$ ' or '# ' before a command"
            elif not kind or kind in ("sh", "text"):
                for line in block.splitlines():
                    if re.match(r"(?:[$#] )?(?:vsl|fio|cargo|make|sudo|apt|podman)\b", line) or line.startswith("$ "):
                        yield f"{name}: '{line}': expected a block of ```console for a command"


def policies() -> Iterator[str]:
    """Which policies there are, and which is the default."""
    source = read("crates/ftl/src/policy/mod.rs")
    names = re.findall(r'Policy::\w+ => "([\w-]+)"', source)
    variant = re.search(r"#\[default\]\s+(\w+) =", source)
    default = re.search(rf'Policy::{variant[1]} => "([\w-]+)"', source)[1] if variant else ""
    text = read("docs/groomer.md")
    codes = dict(re.findall(r"^    (\w+) = (\d+),", source, re.MULTILINE))
    for variant, name in re.findall(r'Policy::(\w+) => "([\w-]+)"', source):
        if f"`{name}`" not in text:
            yield f"docs/groomer.md: the policy `{name}` is not named"
        if not re.search(rf"\b{codes[variant]} {name}\b", read("docs/format.md")):
            yield f"docs/format.md: the policy '{codes[variant]} {name}' is not named"
        if f'"{name}"' not in read("console/src/pages/configure/settings.ts"):
            yield f"console/src/pages/configure/settings.ts: the policy '{name}' is not there to be chosen"
    if f"`{default}` (default)" not in text:
        yield f"docs/groomer.md: expected '`{default}` (default)'"
    word = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"][len(names)]
    for page, words in [("README.md", f"{word} grooming policies"), ("docs/layer.md", f"There are {word}; [The groomer]")]:
        if words not in " ".join(read(page).split()):
            yield f"{page}: expected '{words}'"


def counted() -> Iterator[str]:
    """Numbers that the code knows."""
    mutants = len(list(ROOT.glob("testkit/planted/*.patch")))
    text = " ".join(read("docs/testing.md").split())
    said = re.search(r"(\d+) planted defects", text)
    if not said or int(said[1]) != mutants:
        yield f"docs/testing.md: {said[1] if said else 'no number of'} defects; expected '{mutants} defects'"
    version = re.search(r"FORMAT_VERSION: u32 = (\d+)", read("crates/device/src/superblock.rs"))
    newest = max(map(int, re.findall(r"^\| (\d+) \|", read("CHANGELOG.md"), re.MULTILINE)))
    if not version or int(version[1]) != newest:
        yield f"CHANGELOG.md: the newest format version is {newest}; expected {version and version[1]}"


def members() -> list[Path]:
    """What each crate of the workspace is made from."""
    return [*ROOT.glob("crates/*/Cargo.toml"), *ROOT.glob("testkit/*/Cargo.toml")]


def listed() -> Iterator[str]:
    """Lists that the code holds: alert rules, drills, protocols, crates and what they depend on."""
    rules = re.findall(r'rule\(\s*"([\w-]+)"', read("crates/daemon/src/alerts/rules.rs"))
    drills = re.findall(r'Drill::\w+(?: \{[^}]*\})? => "([\w-]+)"', read("crates/device/src/drill/kind.rs"))
    protocols = [path.stem for path in ROOT.glob("crates/lab/protocols/*.toml")]
    crates = [path.parent.name for path in members()]
    dependencies = {
        name
        for path in members()
        for kind in ["dependencies", "dev-dependencies", "build-dependencies"]
        for name, value in tomllib.loads(path.read_text()).get(kind, {}).items()
        if not (isinstance(value, dict) and (value.get("workspace") or "path" in value))
    }
    wanted = [
        ("docs/alerts.md", "alert rule", rules),
        ("docs/drills.md", "drill", drills),
        ("console/src/pages/drills/kinds.ts", "drill", drills),
        ("docs/lab.md", "protocol", protocols),
        ("ARCHITECTURE.md", "crate", crates),
        ("ARCHITECTURE.md", "dependency", sorted(dependencies)),
    ]
    for page, kind, names in wanted:
        text = read(page)
        if not names:
            yield f"{page}: no {kind} was found in the code: mend this test"
        for name in names:
            if not any(words in text for words in [f"`{name}`", f"`{name} ", f"vsl drill DEVICE {name}", f'name: "{name}"']):
                yield f"{page}: the {kind} `{name}` is not named"


def lab() -> Iterator[str]:
    """Workloads and protocols that pages name come with the program."""
    for directory, pattern in [
        ("workloads", r'"workload": "([^"]+)"|--workload ([a-z][\w-]+)(?![\w.])'),
        ("protocols", r'"protocol": "([^"]+)"|vsl lab (?:run|show) ([a-z][\w-]+)(?![\w./])'),
    ]:
        known = {path.stem for path in ROOT.glob(f"crates/lab/{directory}/*.toml")} | {"recorded"}
        if directory == "workloads":
            # Those of `vsl lab waf`.
            known |= set(re.findall(r'Workload::\w+ => "([\w.-]+)"', read("crates/lab/src/waf/workload.rs")))
        found = [(page, name) for page in PAGES for pair in re.findall(pattern, page.read_text()) for name in pair if name]
        if len(known) < 5 or not found:
            yield f"crates/lab/{directory}: nothing is named or nothing is there: mend this test"
        yield from (f"{page.relative_to(ROOT)}: there is no {name} among the {directory}" for page, name in found if name not in known)


def fitted() -> Iterator[str]:
    """How many figures of data sheets were fitted, and to how many published rows: those that were not kept apart."""
    folder = ROOT / "crates" / "profile" / "profiles"
    sheets = {path.stem: path.read_text() for path in [*folder.glob("*.toml"), *folder.glob("parts/*.toml")]}

    def extended(name: str) -> set[str]:
        return {name}.union(*map(extended, tomllib.loads(sheets[name]).get("extends", [])))

    called = {other: tomllib.loads(text)["name"] for text in sheets.values() for other in tomllib.loads(text).get("aliases", [])}
    published = csv.DictReader(read("crates/lab/data/published.csv").splitlines())
    rows = Counter(row["device"] for row in published if not row["kept_apart"])
    behind: Counter[str] = Counter()
    for device, count in rows.items():
        behind.update({name: count for name in extended(called.get(device, device))})
    table = dict(re.findall(r"^\| `([\w-]+)` \| (\d+ \| \d+) \|", read("docs/published.md"), re.MULTILINE))
    wanted = {name: f"{marks} | {behind[name]}" for name, text in sheets.items() if (marks := text.count("[fitted]"))}
    for name in sorted(table.keys() | wanted.keys()):
        if table.get(name) != wanted.get(name):
            yield f"docs/published.md: `{name}` | {table.get(name)}; expected {wanted.get(name)}"


def fields(vsl: Path) -> Iterator[str]:
    """Fields of `vsl status` that pages name are fields."""
    known = set(subprocess.run([vsl, "status", "--fields"], check=True, capture_output=True, text=True).stdout.split())
    for page in PAGES:
        for number, line in enumerate(page.read_text().splitlines(), 1):
            for name in re.findall(r"--field ([a-z_0-9]+)", line):
                if name not in known:
                    yield f"{page.relative_to(ROOT)}:{number}: there is no field {name}"


def events() -> Iterator[str]:
    """The page of the command names every event that a device's figures lead to."""
    text = read("docs/vsl.md")
    for name in re.findall(r'\("([a-z]+-?[a-z-]*)", ', read("crates/daemon/src/registry/changes.rs").split("#[cfg(test)]")[0]):
        if f"`{name}`" not in text:
            yield f"docs/vsl.md: the event `{name}` is not named"


def commands(vsl: Path) -> Iterator[str]:
    """The page of the command names every command."""
    text = read("docs/vsl.md")
    said = subprocess.run([vsl, "--help"], check=True, capture_output=True, text=True).stdout
    names = re.findall(r"^  ([a-z-]+)  ", said.split("Usage:")[1].split("Options:")[0], re.MULTILINE)
    if len(names) < 20:
        yield "vsl --help: its commands are not found: mend this test"
    for name in names:
        if not re.search(rf"`(vsl )?{name}\b", text):
            yield f"docs/vsl.md: the command `{name}` is not named"


def statuses() -> Iterator[str]:
    """The page of the command says what each exit status means."""
    source = read("crates/cli/src/command.rs").split("EXIT_STATUS: ")[1].split("];")[0]
    codes = re.findall(r"\((\d+), \"", source)
    text = read("docs/vsl.md")
    for code in codes:
        if f"| {code} |" not in text:
            yield f"docs/vsl.md: the exit status {code} is not explained"
    if not codes:
        yield "docs/vsl.md: no exit status was found in the code: mend this test"


def main() -> int:
    vsl = [Path(argument) for argument in sys.argv[1:]]
    checks = [lengths(), links(), paths(), summary(), policies(), counted(), listed(), lab(), fitted(), events(), statuses(), typed(), *map(fields, vsl), *map(commands, vsl)]
    mistakes = [mistake for check in checks for mistake in check]
    print("\n".join(mistakes) or f"{len(PAGES)} pages agree with the code")
    return 1 if mistakes else 0


if __name__ == "__main__":
    sys.exit(main())
