#!/usr/bin/env python3
"""Builds the book as a site, with search, and checks every link of it: build-docs.py VSL MDBOOK DIRECTORY

The book is docs/ with the pages at the top of the tree. Two pages are made here: every command, from its own definition, and every
path of the API, from the API's own description.
"""

import json
import os
import posixpath
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"(\]\()([^)\s]+)(\))")
MADE = {"commands.md": "Every command", "paths.md": "Every path of the API"}
METHODS = ("get", "post", "put", "patch", "delete")


def gather(source: Path) -> None:
    """Copies the pages, and the files that they link to."""
    shutil.copytree(ROOT / "docs", source / "docs")
    for page in ROOT.glob("*.md"):
        shutil.copy(page, source)
    for page in source.rglob("*.md"):
        for _, target, _ in LINK.findall(page.read_text()):
            path = os.path.normpath(page.parent.relative_to(source) / target.partition("#")[0])
            if not re.match("[a-z]+:", target) and (ROOT / path).is_file() and not (source / path).exists():
                (source / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / path, source / path)
    for name in ("book.toml", "book.css"):
        shutil.move(source / "docs" / name, source.parent / name)
    # On the site a directory's first page has another name than in the tree.
    for page in source.rglob("*.md"):
        text = re.sub(r"(\]\((?:[^)\s]*/)?)README\.md", r"\1index.md", page.read_text())
        page.with_name("index.md" if page.name == "README.md" else page.name).write_text(text)
    for page in source.rglob("README.md"):
        page.unlink()


def summary(source: Path) -> None:
    """The table of contents: that of docs/, seen from the top, and the pages that are made."""
    text = (source / "docs/SUMMARY.md").read_text()
    text = LINK.sub(lambda link: link[1] + posixpath.normpath(posixpath.join("docs", link[2])) + link[3], text)
    made = "".join(f"- [{title}](docs/{name})\n" for name, title in MADE.items())
    (source / "SUMMARY.md").write_text(text.rstrip("\n") + "\n" + made)
    (source / "docs/SUMMARY.md").unlink()
    # The site shows it on every page; what leads to it in the tree leads to the first page here.
    first = source / "index.md"
    first.write_text(first.read_text().replace("](docs/SUMMARY.md)", "](docs/getting-started.md)"))


def commands(vsl: str, words: tuple[str, ...] = ()) -> Iterator[str]:
    """The help of a command, and of those below it."""
    said = subprocess.run([vsl, *words, "--help"], check=True, capture_output=True, text=True, env=os.environ | {"COLUMNS": "100"}).stdout
    yield f"{'#' * min(len(words) + 1, 3)} {' '.join(['vsl', *words])}\n\n```text\n{said.rstrip()}\n```\n"
    # Commands stand under headings of their own, with two spaces before them and after them.
    for name in re.findall(r"^  ([a-z][a-z-]*)  +\S", said.split("Usage:")[1].split("\nOptions:")[0], re.MULTILINE) if "<COMMAND>" in said else ():
        if name != "help":
            yield from commands(vsl, (*words, name))


def description(vsl: str) -> dict:
    """The API's description, from a service that is started for it."""
    with tempfile.TemporaryDirectory() as place:
        places = {f"OPENVSL_{name}_DIR": f"{place}/{name.lower()}" for name in ("RUNTIME", "STATE", "STAGING")}
        environment = os.environ | places
        subprocess.run([vsl, "up"], check=True, stdout=subprocess.DEVNULL, env=environment)
        try:
            asked = ["curl", "--silent", "--fail", "--unix-socket", f"{place}/runtime/api.sock", "http://localhost/api/v1/openapi.json"]
            return json.loads(subprocess.run(asked, check=True, capture_output=True).stdout)
        finally:
            subprocess.run([vsl, "down"], check=True, stdout=subprocess.DEVNULL, env=environment)


def paths(api: dict) -> Iterator[str]:
    """A line for each thing that can be asked, and a table for each body."""
    yield "# Every path of the API\n\nMade from `GET /api/v1/openapi.json`; [the API](api.md) explains it.\n\n"
    yield "| asked | for | body |\n|---|---|---|\n"
    for path, item in sorted(api["paths"].items()):
        for method in filter(item.__contains__, METHODS):
            asked = item[method]
            said = (asked.get("summary") or asked.get("description") or "").split("\n")[0]
            body = re.search(r"#/components/schemas/(\w+)", json.dumps(asked.get("requestBody", {})))
            link = f"[{body[1]}](#{body[1].lower()})" if body else ""
            yield f"| `{method.upper()} {path}` | {cell(said)} | {link} |\n"
    yield "\nWhat is sent and answered:\n"
    for name, schema in sorted(api["components"]["schemas"].items()):
        yield f"\n## {name}\n\n{schema.get('description', '')}\n"
        if fields := schema.get("properties"):
            yield "\n| field | is | meaning |\n|---|---|---|\n"
            needed = schema.get("required", [])
            for field, what in fields.items():
                yield f"| `{field}` | {kind(what)}{', needed' if field in needed else ''} | {cell(what.get('description', ''))} |\n"
        elif values := schema.get("enum"):
            yield "\nOne of " + ", ".join(f"`{value}`" for value in values) + ".\n"


def kind(schema: dict) -> str:
    """The type of a field, in a word or two."""
    if reference := schema.get("$ref"):
        name = reference.rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    for key in ("oneOf", "anyOf", "allOf"):
        if key in schema:
            return " or ".join(dict.fromkeys(kind(one) for one in schema[key]))
    kinds = schema.get("type", "any")
    if kinds == "array" or (isinstance(kinds, list) and "array" in kinds):
        return f"list of {kind(schema.get('items', {}))}"
    return " or ".join(kinds) if isinstance(kinds, list) else kinds


def cell(text: str) -> str:
    """Text that stands in one cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")


class Page(HTMLParser):
    """What a page links to, and what may be linked to in it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.names: set[str] = set()
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if name in ("href", "src") and value:
                self.links.append(value)
            elif name == "id" and value:
                self.names.add(value)


def broken(site: Path) -> Iterator[str]:
    """Links of the site that lead nowhere. Those to elsewhere are not followed."""
    pages = {path: Page(path) for path in site.rglob("*.html")}
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or path.name in ("404.html", "toc.html"):
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.exists():
                yield f"{path.relative_to(site)}: {link}: there is no such file"
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].names:
                yield f"{path.relative_to(site)}: {link}: there is no such heading"


def main() -> int:
    """Builds it."""
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    vsl, mdbook, site = os.path.realpath(sys.argv[1]), sys.argv[2], Path(sys.argv[3]).resolve()
    with tempfile.TemporaryDirectory() as work:
        source = Path(work) / "src"
        source.mkdir()
        gather(source)
        summary(source)
        (source / "docs/commands.md").write_text("\n".join(commands(vsl)))
        (source / "docs/paths.md").write_text("".join(paths(description(vsl))))
        subprocess.run([mdbook, "build", work, "--dest-dir", site], check=True)
    mistakes = list(dict.fromkeys(broken(site)))
    print("\n".join(mistakes) or f"{len(list(site.rglob('*.html')))} pages in {site}; every link leads somewhere")
    return 1 if mistakes else 0


if __name__ == "__main__":
    sys.exit(main())
