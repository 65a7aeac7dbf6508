"""OpenVSL from Python: devices with atomic writes and power cuts on command, and cards, drives and disks in virtual time."""

from openvsl._openvsl import (
    Closed,
    Device,
    Error,
    InvalidRequest,
    NoSpace,
    OpenError,
    PowerOff,
    ReadOnly,
    SimulationError,
    Table,
    __version__,
    create,
)
from openvsl.protocols import protocols, run_protocol
from openvsl.simulation import Result, profile, profiles, simulate, workload, workloads
from openvsl.sweeps import Sweep, sweep

__all__ = [
    "Closed",
    "Device",
    "Error",
    "InvalidRequest",
    "NoSpace",
    "OpenError",
    "PowerOff",
    "ReadOnly",
    "Result",
    "SimulationError",
    "Sweep",
    "Table",
    "__version__",
    "create",
    "profile",
    "profiles",
    "protocols",
    "run_protocol",
    "simulate",
    "sweep",
    "workload",
    "workloads",
]
