//! How others reach a device.
