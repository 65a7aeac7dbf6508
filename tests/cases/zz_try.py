"""x"""
import sys
from cases.database_cuts import soundly
from harness import World
from harness.databases import MariaDb, Postgres
ROOT=True
OURS=True
LIMIT=200
def run(world):
    for kind in [MariaDb, Postgres]:
        soundly(world, kind, 3, 5)
