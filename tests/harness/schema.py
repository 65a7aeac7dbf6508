"""The API against its own description: schemathesis makes requests up from it, right and wrong ones, and holds the answers against it."""

from __future__ import annotations

import os
import re
import subprocess
import threading
from dataclasses import dataclass

from harness.check import check
from harness.unix_proxy import UnixProxy
from harness.world import World

# Checks that do not apply: the owner of the Unix socket needs no key; and what the description allows may still not fit what there is, such as the name
# of a device.
LEFT_OUT = "ignored_auth,positive_data_acceptance"
# The service would be gone; and an answer that never ends.
EXCLUDED = ("POST /shutdown", "GET /stream")


@dataclass
class Extent:
    """How much is asked."""

    seconds: int
    seed: int
    # Of each operation; as many as there is time for, and in turns that follow from one another, where it is not said.
    requests: int | None = None


def run(world: World, extent: Extent) -> None:
    """Asks so much, as the service's owner."""
    world.servers.up()
    (world.dir / "made").mkdir()
    (world.dir / "pass").write_text("correct horse\n")
    world.vsl("create", world.dir / "plain.vsl", "--size", "64MiB", "--drills")
    world.vsl("create", world.dir / "safe.vsl", "--size", "64MiB", "--encrypt", "--passphrase-file", world.dir / "pass")
    world.vsl("create", world.dir / "card.vsl", "--emulate", "iodrive-320-mlc", "--scale", 64)
    attach = {
        "plain": [world.dir / "plain.vsl"],
        "safe": [world.dir / "safe.vsl", "--passphrase-file", world.dir / "pass"],
        "card": [world.dir / "card.vsl"],
        "memory": ["memory:64MiB", "--name", "memory"],
    }
    for words in attach.values():
        world.vsl("attach", *words)
    over = threading.Event()
    threading.Thread(target=keep_attached, args=(world, attach, over), daemon=True).start()
    print(f"seed {extent.seed}", flush=True)
    environment = os.environ | {
        "SCHEMATHESIS_HOOKS": "harness.schema_hooks",
        "SCHEMA_DIRECTORY": str(world.dir),
        "SCHEMA_DEVICES": ",".join(attach),
        "PYTHONPATH": os.getcwd(),
    }
    with UnixProxy(world.dir / "run" / "api.sock") as proxy:
        address = f"http://127.0.0.1:{proxy.port}/api/v1"
        # On a machine that does much else the time may be over before the first request: then there is more of it.
        for budget in (extent.seconds, 4 * extent.seconds, 16 * extent.seconds):
            asked = ask(world, address, budget, extent, environment)
            cases = re.search(r"(\d+) generated", asked.stdout)
            if cases or asked.returncode != 0:
                break
    over.set()
    print(asked.stdout, asked.stderr)
    check(asked.returncode == 0, f"the API does not do what its description says (seed {extent.seed}); see above")
    log = (world.dir / "state" / "openvsl.log").read_text(errors="replace")
    check("panicked" not in log and "made a mistake" not in log, "the service's log tells of a mistake")
    world.servers.status()
    check(cases is not None, "schemathesis says of no request that it made")
    print(f"figure: requests made up from the API's description: {cases[1]}, answers that do not fit it: 0")


def keep_attached(world: World, attach: dict[str, list], over: threading.Event) -> None:
    """What was detached by one request is there again for others."""
    while not over.wait(2):
        for words in attach.values():
            # Most of the time it is there; or was erased under another key.
            subprocess.run([str(word) for word in (world.vsl_path, "attach", *words)], capture_output=True, timeout=60)


def ask(world: World, address: str, seconds: int, extent: Extent, environment: dict[str, str]) -> subprocess.CompletedProcess:
    """Runs schemathesis, for so long at most."""
    # What is asked must follow from the seed alone where it is counted: in one order, and not from answers to what was asked before.
    counted = ("--max-examples", extent.requests, "--workers", 1, "--phases", "examples,coverage,fuzzing")
    much = counted if extent.requests else ("--max-time", seconds, "--workers", 2)
    excluded = [word for one in EXCLUDED for word in ("--exclude-name", one)]
    command = [
        *(world.tool("schemathesis"), "run", f"{address}/openapi.json", "--url", address),
        *("--checks", "all", "--exclude-checks", LEFT_OUT, *excluded),
        *(*much, "--seed", extent.seed, "--request-timeout", 30, "--continue-on-failure"),
        *("--generation-database", "none", "--warnings", "off", "--suppress-health-check", "all", "--no-color"),
    ]
    words = [str(word) for word in command]
    return subprocess.run(words, env=environment, cwd=world.dir, text=True, capture_output=True, timeout=seconds * 4 + 300)
