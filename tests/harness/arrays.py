"""Arrays of the service, as cases use them."""

import json

from harness.check import equal
from harness.servers import Device
from harness.world import World


def create(world: World, name: str, level: str, *members: str, force: bool = True) -> None:
    """Makes an array."""
    world.vsl("array", "create", name, "--level", level, *members, *(["--force"] if force else []))
    equal(status(world, name)["state"], "healthy", f"state of {name}")


def array(world: World, name: str) -> Device:
    """An array, or a device, as clients see it now."""
    return Device(name, world.dir / f"{name}.vsl", shown(world, name)["bytes"], world.servers.uri(name))


def status(world: World, name: str) -> dict:
    """What `vsl array status` says."""
    return json.loads(world.vsl("--json", "array", "status", name).out)


def listed(world: World) -> list[str]:
    """The names of all arrays."""
    return [one["name"] for one in json.loads(world.vsl("--json", "array", "list").out)["arrays"]]


def shown(world: World, name: str) -> dict:
    """What `vsl status` says of a device or an array."""
    return json.loads(world.vsl("status", name, "--json").out)["devices"][0]
