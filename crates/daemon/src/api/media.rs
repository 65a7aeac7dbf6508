//! What is done to a device as a whole: made, formatted, erased, given other keys.

use std::path::PathBuf;

use device::{EraseLevel, Secret};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Passphrase;
use crate::Failure;

/// What opens an encrypted device: one of the two.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Opener {
    /// A passphrase. It is neither stored nor logged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passphrase: Option<Passphrase>,
    /// A key file on the service's machine, an absolute path. It is read at each attach.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub key_file: Option<PathBuf>,
}

impl Opener {
    /// What it says, read.
    ///
    /// # Errors
    /// It is none or both, or the key file cannot be read or used.
    pub fn secret(&self) -> Result<Secret, Failure> {
        crate::registry::secret(self.passphrase.as_ref(), self.key_file.as_deref())?
            .ok_or_else(|| Failure::invalid("neither a passphrase nor a key file was given").help("send one of them"))
    }
}

/// Body of `POST /create`: as `vsl create`. One of `size_bytes`, `profile` and `emulate` says how large it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateRequest {
    /// The new file, an absolute path, or blank block device; several for a device that lies on all of them.
    #[schema(value_type = Vec<String>)]
    pub paths: Vec<PathBuf>,
    /// How many of several files hold parity, so that as many may fail: 0, 1 or 2; 1 by default.
    #[serde(default)]
    #[schema(maximum = 2)]
    pub parity: Option<u32>,
    /// Advertised capacity, bytes.
    #[serde(default)]
    pub size_bytes: Option<u64>,
    /// Raw capacity, bytes.
    #[serde(default)]
    pub raw_bytes: Option<u64>,
    /// Raw capacity beyond the advertised, per cent of it; 28 by default, and 64 MiB at least.
    #[serde(default)]
    #[schema(exclusive_minimum = 0, maximum = 10000)]
    pub over_provisioning_percent: Option<f64>,
    /// Make it as this data sheet says.
    #[serde(default)]
    pub profile: Option<String>,
    /// Make it behave as the flash card of this data sheet did.
    #[serde(default)]
    pub emulate: Option<String>,
    /// Emulate a card that is about so many times smaller, and as fast; 1 by default.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 65536)]
    pub scale: Option<u32>,
    /// Seed of what varies in an emulated card; 1 by default.
    #[serde(default)]
    pub seed: Option<u64>,
    /// Only this module of the data sheet, from 0; otherwise all of them, each in a file of its own.
    #[serde(default)]
    pub module: Option<u32>,
    /// 512, 1024, 2048 or 4096; 4096 by default.
    #[serde(default)]
    #[schema(minimum = 512, maximum = 4096)]
    pub sector_bytes: Option<u32>,
    /// `advertised`, `maximum`, `high-performance`, `improved-write`, `maximum-write`, a percentage such as `80%`, or bytes; `advertised` by default.
    #[serde(default)]
    pub capacity: Option<String>,
    /// A name for people; after the file by default.
    #[serde(default)]
    pub label: Option<String>,
    /// Mark it for drills: faults may be put on it by command.
    #[serde(default)]
    pub drills: bool,
    /// Encrypt what is stored, opened by this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encrypt: Option<Opener>,
    /// Attach what was made.
    #[serde(default)]
    pub attach: bool,
    /// What to call it attached; after the file by default.
    #[serde(default)]
    pub name: Option<String>,
    /// Attach it again when the service starts again; not with a passphrase, which is kept nowhere.
    #[serde(default)]
    pub remember: bool,
}

/// Body of `POST /devices/{name}/format`: everything on the device is lost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FormatRequest {
    /// The device's name once more.
    pub confirm: String,
    /// `advertised`, `maximum`, `high-performance`, `improved-write`, `maximum-write`, a percentage such as `80%`, or bytes.
    #[serde(default)]
    pub capacity: Option<String>,
    /// 512, 1024, 2048 or 4096; as it is by default.
    #[serde(default)]
    #[schema(minimum = 512, maximum = 4096)]
    pub sector_bytes: Option<u32>,
    /// A name for people; as it is by default.
    #[serde(default)]
    pub label: Option<String>,
    /// Encrypt what will be stored, under a new key that this opens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encrypt: Option<Opener>,
    /// Of an encrypted device: store what comes as it is from now on. It needs this or `encrypt`.
    #[serde(default)]
    pub plain: bool,
}

/// How thoroughly a device is erased, in the words of NIST SP 800-88.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// The data key of an encrypted device is destroyed, and nothing else done.
    Crypto,
    /// Every byte that was ever written is overwritten.
    #[default]
    Clear,
    /// The data key is destroyed where there is one, every byte overwritten, and the space given back.
    Purge,
}

impl From<Level> for EraseLevel {
    fn from(level: Level) -> EraseLevel {
        match level {
            Level::Crypto => EraseLevel::Crypto,
            Level::Clear => EraseLevel::Clear,
            Level::Purge => EraseLevel::Purge,
        }
    }
}

/// Body of `POST /devices/{name}/erase`: everything that the device ever held is made unreadable.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EraseRequest {
    /// The device's name once more.
    pub confirm: String,
    /// How thoroughly; `clear` by default.
    #[serde(default)]
    pub level: Level,
    /// Encrypt the empty device that is left, under a new key that this opens; otherwise it is not encrypted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encrypt: Option<Opener>,
}

/// What was done to a device that was erased, for the files of whoever asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Certificate {
    /// Its backing files.
    #[schema(value_type = Vec<String>)]
    pub paths: Vec<PathBuf>,
    /// `crypto`, `clear` or `purge`.
    pub level: String,
    /// UUID of the format that was erased.
    pub erased_uuid: String,
    /// UUID of the empty format that took its place.
    pub uuid: String,
    /// Its label, which stays.
    pub label: String,
    /// Wrapped copies of a data key that were destroyed.
    pub keys_destroyed: u32,
    /// Bytes that hold nothing but zeros now, or for which the files hold no space.
    pub zeroed_bytes: u64,
    /// Whether the store was told that it need not keep the space any more.
    pub discarded: bool,
    /// Bytes read back by the scan at the end.
    pub verified_bytes: u64,
    /// How often it was run until it was done.
    pub runs: u32,
    /// When it began, seconds since 1970.
    pub began: u64,
    /// When it ended.
    pub ended: u64,
}

impl From<device::Certificate> for Certificate {
    fn from(certificate: device::Certificate) -> Certificate {
        let device::Certificate {
            paths,
            level,
            erased_uuid,
            uuid,
            label,
            keys_destroyed,
            zeroed_bytes,
            discarded,
            verified_bytes,
            runs,
            began,
            ended,
        } = certificate;
        Certificate {
            paths,
            level: level.name().into(),
            erased_uuid: erased_uuid.to_string(),
            uuid: uuid.to_string(),
            label,
            keys_destroyed,
            zeroed_bytes,
            discarded,
            verified_bytes,
            runs,
            began,
            ended,
        }
    }
}

/// Body of `POST` and `PUT /devices/{name}/keys`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct KeyRequest {
    /// What opens it now; by default the key file that it was attached with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with: Option<Opener>,
    /// What is to open it besides, or instead.
    pub new: Opener,
}

/// Body of `POST /devices/{name}/keys/remove`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RemoveKeyRequest {
    /// What opens it now; by default the key file that it was attached with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with: Option<Opener>,
    /// Which slot is emptied; by default the one that `with` opens.
    #[serde(default)]
    #[schema(maximum = 3)]
    pub slot: Option<usize>,
}

/// The key slots of a device that were changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct KeySlots {
    /// Which slot is another now.
    pub slot: usize,
    /// Those in use: `0: passphrase`, say.
    pub key_slots: Vec<String>,
}
