//! Several writes and trims that are carried out as one.

use device::BatchOp;

use crate::job::Request;
use crate::pending::Answer;
use crate::{Capabilities, Device, Error, Pending};

/// Writes and trims, all of which are carried out or none.
///
/// After any crash or power cut all of a batch is there, or nothing of it, and no reader sees a part. A batch takes as much as one write
/// does ([`Capabilities::max_write_bytes`](crate::Capabilities)), its trims included; they need a sector for every 169 of them, with
/// sectors of 4,096 bytes. No two operations may touch the same sector. A trim in a batch is carried out even where the device's setting
/// `trim` is off.
///
/// ```
/// use openvsl::{Batch, Device, Error};
///
/// let device = Device::memory(64 << 20, 4096)?;
/// device.write(5, &[1; 4096])?;
/// device.batch(Batch::new().write(1, &[2; 4096]).write(900, &[3; 8192]).trim(5, 1))?;
/// assert_eq!(device.ranges(..).collect::<Result<Vec<_>, _>>()?, [1..2, 900..902]);
///
/// let twice = Batch::new().write(1, &[4; 4096]).trim(0, 3);
/// assert!(matches!(device.batch(twice), Err(Error::Batch(_))));
/// assert_eq!(device.read(1, 1)?, [2; 4096], "nothing was changed");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "a batch does nothing until a device is given it"]
pub struct Batch {
    operations: Vec<Operation>,
    /// What the writes write, one behind another.
    data: Vec<u8>,
    durable: bool,
}

#[derive(Clone, Copy, Debug)]
enum Operation {
    Write { lba: u64, bytes: usize },
    Trim { lba: u64, count: u64 },
}

impl Batch {
    /// A batch of nothing yet.
    pub fn new() -> Batch {
        Batch::default()
    }

    /// The same with a write of whole sectors.
    pub fn write(mut self, lba: u64, data: &[u8]) -> Batch {
        self.operations.push(Operation::Write { lba, bytes: data.len() });
        self.data.extend_from_slice(data);
        self
    }

    /// The same with sectors to forget.
    pub fn trim(mut self, lba: u64, sectors: u64) -> Batch {
        self.operations.push(Operation::Trim { lba, count: sectors });
        self
    }

    /// The same, durable when it is answered.
    pub fn durable(self) -> Batch {
        Batch { durable: true, ..self }
    }
}

impl Device {
    /// Carries out all of a batch, or nothing.
    ///
    /// # Errors
    /// The batch is none: empty, too large, beyond the device, or two of its operations overlap. Or the device takes no writes, has no
    /// space, or fails.
    pub fn batch(&self, batch: Batch) -> Result<(), Error> {
        self.begin_batch(batch).wait()
    }

    /// Begins to carry out a batch.
    pub fn begin_batch(&self, batch: Batch) -> Pending<()> {
        let Batch { operations, data, durable } = batch;
        let operation = |operation: Operation| {
            Ok(match operation {
                Operation::Write { lba, bytes } => {
                    BatchOp::Write { lba, count: u32::try_from(self.whole(bytes)?).unwrap_or(u32::MAX) }
                }
                Operation::Trim { lba, count } => BatchOp::Trim { lba, count },
            })
        };
        let ops: Result<Vec<BatchOp>, Error> = operations.into_iter().map(operation).collect();
        let Capabilities { sectors, sector_bytes, max_write_bytes, .. } = *self.capabilities();
        // Here already, so that a service's refusal says as much as one of our own.
        let checked = self.check_writable().and(ops).and_then(|ops| {
            device::check_batch((sectors, sector_bytes, max_write_bytes), &ops, data.len())?;
            Ok(ops)
        });
        match checked {
            Ok(ops) => self.begin(Request::Batch { ops, data, durable }, Answer::nothing),
            Err(error) => crate::pending::failed(error, Answer::nothing),
        }
    }
}
