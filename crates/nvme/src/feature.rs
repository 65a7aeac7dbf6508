//! Features: what a host may ask and set of a controller.
//!
//! Source: NVM Express Base Specification 2.0, 5.27, figure 316 and following; NVM Command Set Specification 1.0, 4.1.3.

use crate::identify::KEEP_ALIVE_GRAIN_MS;
use crate::{Sqe, Status};

/// Identifiers.
pub mod id {
    /// Arbitration.
    pub const ARBITRATION: u8 = 0x01;
    /// Power management.
    pub const POWER: u8 = 0x02;
    /// Temperature threshold.
    pub const TEMPERATURE: u8 = 0x04;
    /// Error recovery.
    pub const ERROR_RECOVERY: u8 = 0x05;
    /// Volatile write cache.
    pub const WRITE_CACHE: u8 = 0x06;
    /// Number of queues.
    pub const QUEUES: u8 = 0x07;
    /// Write atomicity.
    pub const WRITE_ATOMICITY: u8 = 0x0a;
    /// Which events are told.
    pub const EVENTS: u8 = 0x0b;
    /// Keep alive timer.
    pub const KEEP_ALIVE: u8 = 0x0f;
    /// Host identifier.
    pub const HOST_ID: u8 = 0x81;
}

/// I/O queues of a controller at most: each is a connection.
pub const QUEUES: u16 = 64;
/// Warnings of which a new controller tells; the host may ask for more.
const FIRST_EVENTS: u32 = 0x1f;

/// Why a feature is not to be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsupported {
    /// There is none of that identifier, or a value is out of range.
    Field,
    /// It cannot be kept beyond the association.
    Saved,
    /// It is as it is.
    Fixed,
}

impl Unsupported {
    /// As a status.
    pub fn status(self) -> Status {
        match self {
            Unsupported::Field => Status::INVALID_FIELD,
            Unsupported::Saved => Status::NOT_SAVEABLE,
            Unsupported::Fixed => Status::NOT_CHANGEABLE,
        }
    }
}

/// A feature's value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Value {
    /// For the completion.
    pub result: u32,
    /// For the host's memory.
    pub data: Vec<u8>,
}

/// The features of a controller, for as long as an association lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features {
    /// Which events are told.
    pub events: u32,
    /// Milliseconds of silence after which the host counts as gone; 0 for never.
    pub keep_alive_ms: u32,
    /// Written data may wait for a flush.
    pub write_cache: bool,
    arbitration: u32,
    error_recovery: u32,
    write_atomicity: u32,
    queues: u32,
    /// Kelvin; over and under.
    temperature: [u16; 2],
}

/// Whether a feature is set for as long as we run only.
///
/// # Errors
/// It is to be saved.
pub(crate) fn is_not_saved(entry: &Sqe) -> Result<(), Unsupported> {
    if entry.dword(10) >> 31 == 0 { Ok(()) } else { Err(Unsupported::Saved) }
}

fn round_up(keep_alive_ms: u32) -> u32 {
    keep_alive_ms.checked_next_multiple_of(KEEP_ALIVE_GRAIN_MS).unwrap_or(u32::MAX)
}

impl Features {
    /// As a new controller has them.
    pub fn new(keep_alive_ms: u32) -> Features {
        Features {
            events: FIRST_EVENTS,
            keep_alive_ms: round_up(keep_alive_ms),
            write_cache: true,
            arbitration: 0,
            error_recovery: 0,
            write_atomicity: 0,
            queues: u32::from(QUEUES - 1) | u32::from(QUEUES - 1) << 16,
            temperature: [crate::identify::WARM_KELVIN[0], 0],
        }
    }

    /// Answers Get Features.
    ///
    /// # Errors
    /// There is no such feature.
    pub fn get(&self, entry: &Sqe) -> Result<Value, Unsupported> {
        let feature = (entry.dword(10) & 0xff) as u8;
        // Select: current, default, saved, or what can be done with it.
        let of = match entry.dword(10) >> 8 & 7 {
            0 => *self,
            1 | 2 => Features::new(self.keep_alive_ms),
            _ => return Err(Unsupported::Field),
        };
        let result = match feature {
            id::ARBITRATION => of.arbitration,
            id::POWER => 0,
            id::TEMPERATURE => u32::from(of.temperature[usize::from(entry.dword(11) >> 20 & 3 == 1)]),
            id::ERROR_RECOVERY => of.error_recovery,
            id::WRITE_CACHE => u32::from(of.write_cache),
            id::QUEUES => of.queues,
            id::WRITE_ATOMICITY => of.write_atomicity,
            id::EVENTS => of.events,
            id::KEEP_ALIVE => of.keep_alive_ms,
            _ => return Err(Unsupported::Field),
        };
        Ok(Value { result, data: Vec::new() })
    }

    /// Carries out Set Features; what the completion gives back.
    ///
    /// # Errors
    /// There is no such feature, or not of that value.
    pub fn set(&mut self, entry: &Sqe) -> Result<u32, Unsupported> {
        is_not_saved(entry)?;
        let value = entry.dword(11);
        match (entry.dword(10) & 0xff) as u8 {
            id::ARBITRATION => self.arbitration = value,
            id::POWER if value & 0x1f == 0 => {}
            id::TEMPERATURE => self.temperature[usize::from(value >> 20 & 3 == 1)] = (value & 0xffff) as u16,
            id::ERROR_RECOVERY => self.error_recovery = value & 0xffff,
            id::WRITE_CACHE => self.write_cache = value & 1 != 0,
            id::QUEUES => {
                // Both counts are one less; the highest value means nothing.
                let count = |wanted: u32| (wanted & 0xffff).min(u32::from(QUEUES - 1));
                if value & 0xffff == 0xffff || value >> 16 == 0xffff {
                    return Err(Unsupported::Field);
                }
                self.queues = count(value) | count(value >> 16) << 16;
                return Ok(self.queues);
            }
            // Writes are whole either way.
            id::WRITE_ATOMICITY => self.write_atomicity = value & 1,
            id::EVENTS => self.events = value,
            id::KEEP_ALIVE => self.keep_alive_ms = round_up(value),
            id::HOST_ID => return Err(Unsupported::Fixed),
            _ => return Err(Unsupported::Field),
        }
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::admin;

    #[test]
    fn what_is_set_is_there_and_what_is_not_ours_is_refused() {
        let mut features = Features::new(1500);
        let set = |features: &mut Features, feature: u8, value: u32| {
            features.set(&Sqe::new(admin::SET_FEATURES, 0, 0).with(10, feature.into()).with(11, value))
        };
        let get = |features: &Features, feature: u32| {
            features.get(&Sqe::new(admin::GET_FEATURES, 0, 0).with(10, feature)).map(|value| value.result)
        };
        assert_eq!(get(&features, id::KEEP_ALIVE.into()), Ok(2000));
        assert_eq!(set(&mut features, id::QUEUES, 3 | 1000 << 16), Ok(3 | 63 << 16));
        assert_eq!(set(&mut features, id::QUEUES, 0xffff), Err(Unsupported::Field));
        assert_eq!(set(&mut features, id::WRITE_CACHE, 0), Ok(0));
        assert!(!features.write_cache);
        assert_eq!(get(&features, u32::from(id::WRITE_CACHE) | 1 << 8), Ok(1), "the default");
        assert_eq!(set(&mut features, 0x10, 0), Err(Unsupported::Field));
        assert_eq!(set(&mut features, id::HOST_ID, 0), Err(Unsupported::Fixed));
        let saved = Sqe::new(admin::SET_FEATURES, 0, 0).with(10, 1 << 31 | u32::from(id::EVENTS));
        assert_eq!(features.set(&saved), Err(Unsupported::Saved));
    }
}
