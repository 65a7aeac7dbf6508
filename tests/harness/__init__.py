"""What the whole-system tests are made of: a world of their own, servers, clients, checks."""

from harness.check import Failed, check, equal
from harness.servers import Device
from harness.world import GIB, KIB, MIB, World

__all__ = ["GIB", "KIB", "MIB", "Device", "Failed", "World", "check", "equal"]
