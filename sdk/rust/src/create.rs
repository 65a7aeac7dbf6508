//! Makes devices.

use std::path::Path;

use device::{Capacity, FormatOptions, Secret, create_encrypted};

use crate::OpenError;

/// Raw capacity beyond the host's, and the least of it: as `vsl create` has it.
const RESERVE_PERCENT: u64 = 28;
const LEAST_RESERVE: u64 = 64 << 20;

/// What a new device is like.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CreateOptions {
    /// Bytes of a sector: 512, 1,024, 2,048 or 4,096.
    pub sector_bytes: u32,
    /// For people.
    pub label: String,
    /// Whether faults may be put on it by command: see [`crate::Device::drill`].
    pub drills: bool,
    /// Encrypts it.
    pub secret: Option<Secret>,
    /// Bytes that can be addressed, far more than there is room for: a sparse device.
    pub address_space: Option<u64>,
}

impl Default for CreateOptions {
    fn default() -> CreateOptions {
        let label = String::new();
        CreateOptions { sector_bytes: 4096, label, drills: false, secret: None, address_space: None }
    }
}

/// Makes a device of so many bytes in a new file, which takes space as the device is written.
///
/// # Errors
/// Something is there already, or the sizes do not fit.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("new.vsl");
/// openvsl::create(&path, 64 << 20, &Default::default())?;
/// assert!(openvsl::create(&path, 64 << 20, &Default::default()).is_err(), "it is there already");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn create(path: impl AsRef<Path>, bytes: u64, options: &CreateOptions) -> Result<(), OpenError> {
    let path = path.as_ref().to_path_buf();
    let reserve = (bytes / 100).saturating_mul(RESERVE_PERCENT).max(LEAST_RESERVE);
    let (sector_bytes, label) = (options.sector_bytes, options.label.clone());
    let capacity = options.address_space.map_or(Capacity::Advertised, Capacity::AddressSpace);
    let create = device::CreateOptions {
        advertised_bytes: bytes,
        raw_bytes: bytes.saturating_add(reserve),
        profile: None,
        parity: 0,
        format: FormatOptions { sector_bytes, capacity, label },
    };
    let paths = [path];
    match &options.secret {
        None => device::create(&paths, &create),
        Some(secret) => create_encrypted(&paths, &create, secret),
    }?;
    if options.drills {
        device::mark_for_drills(&paths, true).map_err(device::CreateError::Format)?;
    }
    Ok(())
}
