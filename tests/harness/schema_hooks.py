"""Loaded by schemathesis: what it makes up stays in the test's directory and on this machine, and names things that exist now and then."""

import os
from pathlib import Path

import schemathesis

DIRECTORY = Path(os.environ["SCHEMA_DIRECTORY"])
DEVICES = os.environ["SCHEMA_DEVICES"].split(",")
PATHS = {"path", "onto", "key_file", "trace"}
COUNT = {"names": 0}


def inside(value: object) -> object:
    """A path in the test's directory, if it is one at all."""
    if not isinstance(value, str) or value.startswith("memory:"):
        return value
    plain = "".join(c if c.isalnum() and c.isascii() else "_" for c in value)[:40]
    return str(DIRECTORY / "made" / plain) if plain else value


def tamed(value: object) -> object:
    """The same, where it can reach no other file and no other machine."""
    if isinstance(value, list):
        return [tamed(one) for one in value]
    if not isinstance(value, dict):
        return value
    out = {}
    for key, one in value.items():
        if key in PATHS:
            one = inside(one)
        elif key == "paths" and isinstance(one, list):
            one = [inside(path) for path in one]
        elif key in ("address", "url") and isinstance(one, str):
            one = "http://127.0.0.1:9/"
        elif key == "host" and isinstance(one, str):
            one = "127.0.0.1"
        elif key == "size_bytes" and isinstance(one, int) and not isinstance(one, bool):
            # Files are sparse, but their tables are not.
            one = one % (1 << 32)
        else:
            one = tamed(one)
        out[key] = one
    return out


@schemathesis.hook
def map_body(ctx, body):
    return tamed(body)


@schemathesis.hook
def map_path_parameters(ctx, path_parameters):
    """Every other time the device is one that is there."""
    if path_parameters and "name" in path_parameters:
        COUNT["names"] += 1
        if COUNT["names"] % 2:
            path_parameters["name"] = DEVICES[COUNT["names"] // 2 % len(DEVICES)]
    return path_parameters
