"""`make demo-databases`, short: MariaDB, PostgreSQL and SQLite in three places, and a page with a chart of each figure."""

import json
import sys
from pathlib import Path

from harness import World, check, equal

ROOT = True
OURS = True
SLOW = True
LIMIT = 600
DEMO = Path(__file__).resolve().parents[2] / "bench" / "databases.py"


def run(world: World) -> None:
    said = world.run(sys.executable, DEMO, "--vsl", world.vsl_path, "--out", world.dir / "page", "--plan", "smoke", "--no-cuts", timeout=280)
    page = Path(said.out.splitlines()[-1]).read_text()
    for chart in ["transactions", "p99", "bytes"]:
        check(f'id="{chart}' in page, f"the page has no chart {chart}")
    figures = json.loads((world.dir / "page" / "databases.json").read_text())
    equal([database["name"] for database in figures["databases"]], ["MariaDB", "PostgreSQL", "SQLite"], "databases")
    for database in figures["databases"]:
        equal(len(database["arms"]), 3, f"places of {database['name']}")
        for arm in database["arms"]:
            check(min(arm["transactions_per_s"]) > 0 and min(arm["bytes_per_transaction"]) > 0, f"{database['name']}, {arm['place']}: {arm}")
    twice = [arm["more"]["pages written twice a transaction"] > 0 for arm in figures["databases"][0]["arms"]]
    equal(twice, [True, True, False], "where MariaDB writes pages twice")
