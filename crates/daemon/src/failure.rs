//! What went wrong and what to do next, as the API sends it and the command prints it.

use std::fmt;
use std::path::Path;

use axum::http::StatusCode;
use device::{AttachError, CreateError, DrillError, FormatError, KeyError, SecretError};
use media::OpenError;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The sort of a failure: decides the HTTP status and the command's exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The request makes no sense as it stands.
    Invalid,
    /// There is no such thing.
    NotFound,
    /// The state of things forbids it; it may work later, or with force.
    Conflict,
    /// The caller may not.
    Forbidden,
    /// It was tried and did not work.
    Failed,
    /// The path does not take this method.
    Method,
    /// Nobody has signed in.
    Unauthenticated,
    /// Too often.
    TooMany,
    /// Another host did not answer.
    Unreachable,
}

impl Kind {
    /// The HTTP status that says so.
    pub fn status(self) -> StatusCode {
        match self {
            Kind::Invalid => StatusCode::BAD_REQUEST,
            Kind::Unauthenticated => StatusCode::UNAUTHORIZED,
            Kind::Forbidden => StatusCode::FORBIDDEN,
            Kind::NotFound => StatusCode::NOT_FOUND,
            Kind::Method => StatusCode::METHOD_NOT_ALLOWED,
            Kind::Conflict => StatusCode::CONFLICT,
            Kind::TooMany => StatusCode::TOO_MANY_REQUESTS,
            Kind::Failed => StatusCode::INTERNAL_SERVER_ERROR,
            Kind::Unreachable => StatusCode::BAD_GATEWAY,
        }
    }
}

/// A failure, for people and programs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Failure {
    /// What went wrong; names the thing.
    pub error: String,
    /// What to do next; empty when nothing can be done.
    #[serde(default)]
    pub help: String,
    /// Its sort.
    pub kind: Kind,
}

impl Failure {
    fn new(kind: Kind, error: impl Into<String>) -> Failure {
        Failure { error: error.into(), help: String::new(), kind }
    }

    /// The request makes no sense.
    pub fn invalid(error: impl Into<String>) -> Failure {
        Failure::new(Kind::Invalid, error)
    }

    /// There is no such thing.
    pub fn not_found(error: impl Into<String>) -> Failure {
        Failure::new(Kind::NotFound, error)
    }

    /// The path does not take the method.
    pub fn method() -> Failure {
        Failure::new(Kind::Method, "the path does not take this method")
            .help("`GET /api/v1/openapi.json` says which it takes")
    }

    /// The state of things forbids it.
    pub fn conflict(error: impl Into<String>) -> Failure {
        Failure::new(Kind::Conflict, error)
    }

    /// The caller may not.
    pub fn forbidden(error: impl Into<String>) -> Failure {
        Failure::new(Kind::Forbidden, error)
    }

    /// It did not work.
    pub fn failed(error: impl Into<String>) -> Failure {
        Failure::new(Kind::Failed, error)
    }

    /// Nobody has signed in.
    pub fn unauthenticated(error: impl Into<String>) -> Failure {
        Failure::new(Kind::Unauthenticated, error)
    }

    /// Too often.
    pub fn too_many(error: impl Into<String>) -> Failure {
        Failure::new(Kind::TooMany, error)
    }

    /// Another host did not answer.
    pub fn unreachable(error: impl Into<String>) -> Failure {
        Failure::new(Kind::Unreachable, error)
    }

    /// With advice.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Failure {
        self.help = help.into();
        self
    }

    /// What a format says for itself, said by another command that makes one.
    #[must_use]
    pub fn helped_by(mut self, command: &str) -> Failure {
        self.help = self.help.replace("`vsl format --help`", &format!("`vsl {command} --help`"));
        self
    }

    /// The operating system refused something about a file.
    pub fn io(path: &Path, error: &std::io::Error) -> Failure {
        use std::io::ErrorKind;
        let (kind, help) = match error.kind() {
            ErrorKind::NotFound => {
                (Kind::NotFound, "check the path; `vsl create` makes a device, `vsl status` lists attached ones")
            }
            ErrorKind::PermissionDenied => (Kind::Forbidden, "run as the owner of the file, or change its permissions"),
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => (Kind::Failed, "free some space on its file system"),
            ErrorKind::FileTooLarge => {
                (Kind::Failed, "choose a smaller size, or a file system that takes files this large")
            }
            ErrorKind::ReadOnlyFilesystem => {
                (Kind::Failed, "attach with --read-only, or mount its file system for writing")
            }
            _ => (Kind::Failed, "the system's log may say more"),
        };
        Failure::new(kind, format!("{}: {error}", path.display())).help(help)
    }

    /// A device refused a drill.
    pub fn drill(device: &str, error: &DrillError) -> Failure {
        let kind = match error {
            DrillError::Media { .. } => Kind::Failed,
            DrillError::Unknown { .. } | DrillError::Invalid { .. } | DrillError::Unfit { .. } => Kind::Invalid,
            _ => Kind::Conflict,
        };
        // The device's own crate does not know under which name it is attached.
        Failure::split(kind, &error.to_string().replace("DEVICE", device))
    }

    /// A message that carries its advice behind the last semicolon, as those of the `device` crate do.
    pub(crate) fn split(kind: Kind, message: &str) -> Failure {
        match message.rsplit_once("; ") {
            Some((error, help)) => Failure::new(kind, error).help(help),
            None => Failure::new(kind, message),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.help.as_str() {
            "" => f.write_str(&self.error),
            help => write!(f, "{}; {help}", self.error),
        }
    }
}

impl std::error::Error for Failure {}

impl From<AttachError> for Failure {
    fn from(error: AttachError) -> Failure {
        match &error {
            AttachError::Open(OpenError::Io { path, error }) => Failure::io(path, error),
            AttachError::Open(OpenError::Kind { .. }) => {
                Failure::invalid(error.to_string()).help("name the device's file; `vsl create` makes one")
            }
            AttachError::Open(OpenError::Locked { .. } | OpenError::Under { .. } | OpenError::Mounted { .. }) => {
                Failure::split(Kind::Conflict, &error.to_string())
            }
            AttachError::WrongKey { .. } | AttachError::NeedsKey { .. } => {
                Failure::split(Kind::Forbidden, &error.to_string())
            }
            AttachError::Twin { .. }
            | AttachError::TakenHere { .. }
            | AttachError::NoRoom { .. }
            | AttachError::NoNewIdentity { .. }
            | AttachError::MovedAway { .. }
            | AttachError::Foreign { .. }
            | AttachError::NotEncrypted { .. }
            | AttachError::BeingErased { .. }
            | AttachError::Degraded { .. }
            | AttachError::MayBeBehind { .. } => Failure::split(Kind::Conflict, &error.to_string()),
            AttachError::Media { .. } => Failure::failed(error.to_string()).help("the system's log may say more"),
            _ => Failure::split(Kind::Failed, &error.to_string()),
        }
    }
}

impl From<FormatError> for Failure {
    fn from(error: FormatError) -> Failure {
        match error {
            FormatError::Io { path, error } => Failure::io(&path, &error),
            FormatError::Attach(error) => error.into(),
            FormatError::Invalid { name, ref value, .. } => {
                let help = match name {
                    "device" if value == "without parity" => {
                        "parity is chosen when a device is made: `vsl create --parity 1`"
                    }
                    "device" if value == "a card that is emulated" => {
                        "`vsl status DEVICE` shows which of its chips are out of service, or were given up"
                    }
                    "device" => "detach it, and attach it without --read-only",
                    "die" => "`vsl status DEVICE` shows which of its files are out of service",
                    "onto" => "name a new file with --onto, or a blank block device",
                    "level" => "`vsl sure-erase --clear` or `--purge` overwrites what is not encrypted",
                    "keys" => "`vsl status DEVICE` shows its key slots",
                    _ => "see `vsl format --help` for what can be chosen",
                };
                Failure::invalid(error.to_string()).help(help)
            }
        }
    }
}

impl From<telemetry::Error> for Failure {
    fn from(error: telemetry::Error) -> Failure {
        Failure::failed(format!("the history: {error}")).help("the service's log says more; devices are not affected")
    }
}

impl From<SecretError> for Failure {
    fn from(error: SecretError) -> Failure {
        match error {
            SecretError::Io { path, error } => Failure::io(&path, &error).help("name a file that can be read"),
            error => Failure::split(Kind::Invalid, &error.to_string()),
        }
    }
}

impl From<KeyError> for Failure {
    fn from(error: KeyError) -> Failure {
        match error {
            KeyError::Format(error) => error.into(),
            error => Failure::split(Kind::Conflict, &error.to_string()),
        }
    }
}

impl From<CreateError> for Failure {
    fn from(error: CreateError) -> Failure {
        match error {
            CreateError::Format(error) => error.into(),
            error @ CreateError::Exists { .. } => Failure::split(Kind::Conflict, &error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_is_taken_out_of_a_message() {
        let failure =
            Failure::from(AttachError::from(OpenError::Locked { path: "a; b".into(), holder: "process 7".into() }));
        assert_eq!(failure.error, "a; b: in use by process 7");
        assert_eq!(failure.help, "detach it there first");
        assert_eq!(failure.kind, Kind::Conflict);
        assert_eq!(failure.to_string(), "a; b: in use by process 7; detach it there first");
    }

    #[test]
    fn operating_system_errors_say_what_to_do() {
        let error = std::io::Error::from_raw_os_error(rustix::io::Errno::NOENT.raw_os_error());
        let failure = Failure::from(AttachError::from(OpenError::Io { path: "x.vsl".into(), error }));
        assert_eq!(failure.kind, Kind::NotFound);
        assert!(failure.error.starts_with("x.vsl: "), "{}", failure.error);
        assert!(failure.help.contains("vsl create"), "{}", failure.help);
    }
}
