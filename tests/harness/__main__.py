"""Runs one test in its world; the runner starts one process like this for each."""

import importlib
import os
import sys
import traceback
from pathlib import Path

from harness.check import Failed
from harness.cleanup import MARK
from harness.world import World


def main() -> int:
    """Gives the exit status: 0 if the test held."""
    case, vsl, server, tools = sys.argv[1:]
    world = World(Path(os.environ[MARK]), Path(vsl), server, Path(tools))
    try:
        importlib.import_module(f"cases.{case}").run(world)
    except Failed as failed:
        frames = [f for f in traceback.extract_tb(failed.__traceback__) if "/cases/" in f.filename]
        where = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
        print(f"FAILED: {failed}{where}", flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
