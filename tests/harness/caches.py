"""Cached volumes of a test, on a cache device called fast."""

import json
from pathlib import Path

from .check import equal
from .servers import Device
from .world import World


def create(world: World, name: str, behind: str | Path, mode: str) -> None:
    world.vsl("cache", "create", name, "--cache", "fast", "--behind", behind, "--mode", mode)
    equal(status(world, name)["state"], "healthy", f"state of {name}")


def volume(world: World, name: str) -> Device:
    return Device(name, world.dir / f"{name}.vsl", shown(world, name)["bytes"], world.servers.uri(name))


def status(world: World, name: str) -> dict:
    return json.loads(world.vsl("--json", "cache", "status", name).out)


def shown(world: World, name: str) -> dict:
    return json.loads(world.vsl("--json", "status", name).out)["devices"][0]
