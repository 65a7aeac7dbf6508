"""Every command of the pages about the source tree runs word for word, in a system of its own, with what is built already; the rest is run by other tests."""

from harness import World
from harness.bare import TREE
from harness.layered import pages

ROOT = True
OURS = True
LIMIT = 400
PAGES = ["../README.md", "../CONTRIBUTING.md", "console.md", "testing.md"]
# What stands in these pages and is not run here: how the command begins, and what does.
ELSEWHERE = {
    "# apt install": "package",
    "$ vsl sim iodrive-duo": "readme",
    # What runs this case itself, or takes longer than all cases together.
    "$ make test": ".ci/run",
    "$ /usr/bin/python3 tests/run.py": "Makefile",
    "$ tests/planted.py  ": "Makefile",
    "$ tests/planted.py SeatReused": "Makefile",
    # npm's registry is on the network.
    "$ cd console && npm ci": "scripts/build-console.sh",
}
# `cargo run -p CRATE -- WORDS` is the program that is built, of the development build.
CARGO = """cat >/usr/local/bin/cargo <<'END'
#!/bin/bash
while [ "$1" != -- ]; do [ "$1" != -p ] || crate=$2; shift; done
exec PROGRAMS/vsl-$crate "${@:2}"
END
chmod +x /usr/local/bin/cargo; ln -s PROGRAMS/faultfs /usr/local/bin"""
# A page is served while the server runs.
SERVED = """npm() {
  command npm "$@" >served & until url=$(grep -o 'http://[a-z0-9.:]*' served); do sleep 0.1; done
  curl --silent --fail $url >/dev/null; kill %1
}"""
# Series of seeds that take hours.
SHORTER = {"$ cargo run --release -p sim": "--seconds 1", "$ cargo run --release -p sim --bin vsl-sim -- --from 50001": ""}


def run(world: World) -> None:
    before = {
        # They would have one port between them.
        "../README.md $ make run": "vsl down",
        "testing.md": CARGO.replace("PROGRAMS", str(world.vsl_path.parent)),
        "testing.md # echo": "until [ -e control ]; do sleep 0.1; done",
        "console.md $ VSL_CONSOLE": f"cd {TREE}/console; {SERVED}",
    }
    pages(world, PAGES, elsewhere=ELSEWHERE, before=before, shorter=SHORTER, least=28)
