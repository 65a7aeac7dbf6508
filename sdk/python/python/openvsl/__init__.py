"""OpenVSL's devices from Python: atomic writes, durable when you say so, and power cuts on command."""

from openvsl._openvsl import (
    Closed,
    Device,
    Error,
    InvalidRequest,
    NoSpace,
    OpenError,
    PowerOff,
    ReadOnly,
    __version__,
    create,
)

__all__ = [
    "Closed",
    "Device",
    "Error",
    "InvalidRequest",
    "NoSpace",
    "OpenError",
    "PowerOff",
    "ReadOnly",
    "__version__",
    "create",
]
