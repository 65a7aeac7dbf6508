//! What stands behind cached volumes and is no device of the service: opens what the state file names.

use std::io::{self, ErrorKind};
use std::sync::Arc;

use export::nbd::client::Address as NbdAddress;
use export::{FileStore, NbdStore, Store, witness_of, write_zeros};
use openvsl::{Address as NvmeAddress, ConnectOptions, Device, Error};

use crate::Failure;
use crate::state::RememberedBehind;

/// Requests of one namespace at a time: a long one is cut in pieces of what it takes.
const PIECES: usize = 64;

/// A store that is named by its address.
enum Named {
    Nbd(NbdAddress),
    Nvme(NvmeAddress),
}

/// An address, in the form in which it is remembered.
///
/// # Errors
/// It is none.
pub fn address(text: &str) -> Result<String, Failure> {
    parse(text).map(|named| match named {
        Named::Nbd(address) => address.to_string(),
        Named::Nvme(address) => address.to_string(),
    })
}

fn parse(text: &str) -> Result<Named, Failure> {
    let invalid = |error: String| Failure::split(crate::failure::Kind::Invalid, &error);
    if text.starts_with("nvme+") {
        return Ok(Named::Nvme(text.parse().map_err(|error: openvsl::BadAddress| invalid(error.to_string()))?));
    }
    Ok(Named::Nbd(text.parse().map_err(|error: export::nbd::client::BadAddress| invalid(error.to_string()))?))
}

/// Opens a store; nothing for a device of the service.
///
/// # Errors
/// It is not there, or takes no writes.
pub fn open(behind: &RememberedBehind) -> Result<Option<Arc<dyn Store>>, Failure> {
    Ok(Some(match behind {
        RememberedBehind::Device(_) => return Ok(None),
        RememberedBehind::Path(path) => Arc::new(FileStore::open(path).map_err(|error| Failure::io(path, &error))?),
        RememberedBehind::Address(text) => {
            let failed = |error: io::Error| {
                Failure::failed(format!("{text}: {error}"))
                    .help("see that the server runs and serves this, for writing")
            };
            match parse(text)? {
                Named::Nbd(address) => Arc::new(NbdStore::connect(&address).map_err(failed)?),
                Named::Nvme(address) => Arc::new(NvmeStore::connect(&address).map_err(failed)?),
            }
        }
    }))
}

/// A namespace of an NVMe subsystem.
struct NvmeStore {
    device: Device,
    name: String,
    /// What is deallocated there reads as zeros.
    trims: bool,
}

impl NvmeStore {
    fn connect(address: &NvmeAddress) -> io::Result<NvmeStore> {
        let device = Device::connect_with(address, &ConnectOptions::default()).map_err(io::Error::other)?;
        if device.capabilities().read_only {
            return Err(io::Error::other("the namespace is read-only; expected one that takes writes"));
        }
        let name = address.to_string();
        // Of other controllers a deallocation is a wish.
        let trims = name.contains(&nvme::fabrics::subsystem_name(""));
        Ok(NvmeStore { device, name, trims })
    }

    fn sector(&self) -> u64 {
        u64::from(self.device.capabilities().sector_bytes)
    }

    /// Bytes of one request.
    fn most(&self) -> usize {
        self.device.capabilities().max_write_bytes as usize
    }

    /// Writes pieces, several at a time.
    fn write_pieces(&self, offset: u64, data: &[u8], fua: bool) -> io::Result<()> {
        let mut lba = offset / self.sector();
        let pieces: Vec<&[u8]> = data.chunks(self.most()).collect();
        for some in pieces.chunks(PIECES) {
            let mut pending = Vec::with_capacity(some.len());
            for piece in some {
                pending.push(match fua {
                    true => self.device.begin_write_durable(lba, piece.to_vec()),
                    false => self.device.begin_write(lba, piece.to_vec()),
                });
                lba += piece.len() as u64 / self.sector();
            }
            for one in pending {
                one.wait().map_err(io_error)?;
            }
        }
        Ok(())
    }
}

fn io_error(error: Error) -> io::Error {
    let kind = match &error {
        Error::Disconnected { .. } | Error::Gone => ErrorKind::NotConnected,
        Error::NoSpace => ErrorKind::StorageFull,
        Error::ReadOnly => ErrorKind::ReadOnlyFilesystem,
        _ => ErrorKind::Other,
    };
    io::Error::new(kind, error)
}

impl Store for NvmeStore {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn bytes(&self) -> u64 {
        self.device.capabilities().sectors * self.sector()
    }

    fn block_bytes(&self) -> u32 {
        self.device.capabilities().sector_bytes
    }

    /// Which namespace it is, and how long.
    fn witness(&self) -> [u8; 32] {
        let (high, low) = uuid::Uuid::parse_str(&self.device.capabilities().uuid).unwrap_or_default().as_u64_pair();
        witness_of([self.bytes(), high, low, 0])
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let (mut lba, sector) = (offset / self.sector(), self.sector() as usize);
        let mut pending = Vec::new();
        for piece in buffer.chunks(self.most()) {
            pending.push(self.device.begin_read(lba, (piece.len() / sector) as u32));
            lba += (piece.len() / sector) as u64;
        }
        for (piece, one) in buffer.chunks_mut(self.most()).zip(pending) {
            piece.copy_from_slice(&one.wait().map_err(io_error)?);
        }
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8], fua: bool) -> io::Result<()> {
        self.write_pieces(offset, data, fua)
    }

    fn zero(&self, offset: u64, bytes: u64, fua: bool) -> io::Result<()> {
        let (lba, count) = (offset / self.sector(), bytes / self.sector());
        match (self.trims, fua) {
            (false, _) => write_zeros(offset, bytes, |at, zeros| self.write_pieces(at, zeros, fua)),
            (true, true) => self.device.trim_durable(lba, count).map_err(io_error),
            (true, false) => self.device.trim(lba, count).map_err(io_error),
        }
    }

    fn flush(&self) -> io::Result<()> {
        self.device.flush().map_err(io_error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_remembered_in_one_form() {
        assert_eq!(address("nbd://store/a").expect("an address"), "nbd://store:10809/a");
        let nvme = "nvme+tcp://store:4420/3f0e4a55-9d5c-4c53-8a30-0d0c6f1f2b11";
        assert!(
            address(nvme)
                .expect("an address")
                .ends_with("nqn.2026-11.org.openvsl:uuid:3f0e4a55-9d5c-4c53-8a30-0d0c6f1f2b11")
        );
        for text in ["http://store/a", "nvme+tcp://store/a", "nbd://"] {
            let failure = address(text).expect_err("no address");
            assert!(failure.error.contains(text) && !failure.help.is_empty(), "{failure:?}");
        }
    }
}
