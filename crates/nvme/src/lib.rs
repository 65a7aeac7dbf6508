//! NVMe, both sides of it, and nothing of sockets.
//!
//! A host sends commands to a controller, which here is a device of ours, over queues; each queue is a connection of its own
//! (NVMe over Fabrics). This crate knows the bytes: [`pdu`] how they travel over TCP, [`command`] commands and completions,
//! [`identify`], [`log`], [`feature`] and [`property`] what a controller says of itself. [`Subsystem`] keeps the controllers of a
//! device and carries out their admin commands; [`nvm`], [`zoned`] and [`vendor`] check I/O commands, which the device carries out. [`auth`] lets both sides
//! prove who they are. [`initiator`] is the host's side, for tests, measurements and programs that use a device over the network.
//! The crate knows no clock and no thread:
//! whoever uses it passes bytes in and out, and tells the time. Only the initiator's links read and write, on streams they are given.
//!
//! Promises:
//! - each constant and layout names its source in the specifications;
//! - hostile bytes come out as an error that says what was wrong, never as a panic, and take bounded memory;
//! - what a controller announces of a device is true of that device.
//!
//! ```
//! use nvme::command::nvm;
//! use nvme::pdu::{self, Common, Digests};
//! use nvme::{Data, Sqe};
//!
//! // A host writes 4 KiB at block 8: a capsule's header, then the data.
//! let entry = Sqe::new(nvm::WRITE, 1, 1).with(10, 8).with_data(Data::InCapsule(4096));
//! let mut unit = pdu::command(&entry, 4096, Digests::default(), 4).as_bytes().to_vec();
//! unit.extend([7; 4096]);
//! // A controller takes it apart.
//! let common = Common::decode(unit.first_chunk().unwrap(), Digests::default(), 16 << 10).unwrap();
//! assert_eq!((pdu::entry(&unit), common.data(&unit)), (entry, &[7; 4096][..]));
//! ```

pub mod auth;
mod bytes;
pub mod command;
pub mod controller;
pub mod discovery;
pub mod fabrics;
pub mod feature;
pub mod identify;
pub mod initiator;
pub mod log;
pub mod namespace;
pub mod nvm;
pub mod pdu;
pub mod placement;
pub mod property;
mod status;
mod subsystem;
pub mod vendor;
pub mod zoned;

pub use command::{Cqe, Data, Fuse, Sqe};
pub use namespace::{Health, Namespace, Subject, Wear};
pub use status::Status;
pub use subsystem::{Admitted, Subsystem};
