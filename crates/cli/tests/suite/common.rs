//! A place for one test: a directory with a service of its own, and the built `vsl`.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

/// A directory; the service in it is stopped at the end.
pub struct Place {
    directory: TempDir,
}

/// What a command said.
pub struct Said {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Said {
    /// It succeeded; its standard output.
    #[track_caller]
    pub fn ok(self) -> String {
        assert_eq!(self.code, Some(0), "out: {}\nerr: {}", self.out, self.err);
        self.out
    }

    /// It succeeded; its standard output is JSON, without the version of the schema.
    #[track_caller]
    pub fn json(self) -> Value {
        let out = self.ok();
        let mut value: Value = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"));
        let version = value.as_object_mut().and_then(|object| object.remove("schema_version"));
        assert_eq!(version, Some(1.into()), "{out}");
        value
    }

    /// It failed with this code, and said all of these on standard error, in the words of users.
    #[track_caller]
    pub fn fails(self, code: i32, parts: &[&str]) {
        assert_eq!(self.code, Some(code), "out: {}\nerr: {}", self.out, self.err);
        for part in parts {
            assert!(self.err.contains(part), "no '{part}' in: {}", self.err);
        }
        for debug in ["panicked", "Some(", "Err(", "Os {", "Error {"] {
            assert!(!self.err.contains(debug), "{}", self.err);
        }
    }
}

impl Place {
    pub fn new() -> Place {
        Place { directory: tempfile::tempdir().expect("a temporary directory") }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_vsl"));
        command
            .current_dir(self.directory.path())
            .env("OPENVSL_RUNTIME_DIR", self.path("run"))
            .env("OPENVSL_STATE_DIR", self.path("state"))
            .env_remove("RUST_LOG")
            .env_remove("NOTIFY_SOCKET")
            .stdin(Stdio::null());
        command
    }

    pub fn vsl(&self, arguments: &[&str]) -> Said {
        let output = self.command().args(arguments).output().expect("vsl runs");
        Said {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).expect("UTF-8"),
            err: String::from_utf8(output.stderr).expect("UTF-8"),
        }
    }

    /// Makes a device file.
    pub fn create(&self, name: &str) {
        self.vsl(&["create", name, "--size", "16MiB"]).ok();
    }

    /// Every device, as `vsl status --json` lists it.
    pub fn devices(&self) -> Vec<Value> {
        self.vsl(&["status", "--json"]).json()["devices"].as_array().expect("a list").clone()
    }

    /// Connects an NBD client to an export of the service.
    pub fn client(&self, export: &str) -> NbdClient {
        NbdClient::connect(&self.path("run/nbd.sock"), export)
    }

    /// What the service logged.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.path("state/openvsl.log")).unwrap_or_default()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.vsl(&["down", "--force"]);
    }
}

/// An NBD client: as much of the protocol as it takes to be connected, write and read.
pub struct NbdClient(UnixStream);

impl NbdClient {
    pub fn connect(socket: &Path, export: &str) -> NbdClient {
        // The socket's file is there a moment before anybody listens.
        let refused = |stream: &std::io::Result<UnixStream>| {
            stream.as_ref().is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionRefused)
        };
        let mut stream = UnixStream::connect(socket);
        for _ in 0..100 {
            if !refused(&stream) {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
            stream = UnixStream::connect(socket);
        }
        let mut stream = stream.expect("connected");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
        let mut greeting = [0; 18];
        stream.read_exact(&mut greeting).expect("a greeting");
        assert_eq!(&greeting[..16], b"NBDMAGICIHAVEOPT");
        stream.write_all(&3u32.to_be_bytes()).expect("flags");
        // NBD_OPT_GO with the name and no information requests.
        let mut option = b"IHAVEOPT".to_vec();
        option.extend(7u32.to_be_bytes());
        option.extend((export.len() as u32 + 6).to_be_bytes());
        option.extend((export.len() as u32).to_be_bytes());
        option.extend(export.as_bytes());
        option.extend(0u16.to_be_bytes());
        stream.write_all(&option).expect("sent");
        loop {
            let mut header = [0; 20];
            stream.read_exact(&mut header).expect("an option's reply");
            let word = |at: usize| u32::from_be_bytes(header[at..at + 4].try_into().expect("four bytes"));
            let (kind, length) = (word(12), word(16));
            stream.read_exact(&mut vec![0; length as usize]).expect("its data");
            match kind {
                1 => return NbdClient(stream),
                3 => {}
                kind => panic!("option reply {kind:#x}"),
            }
        }
    }

    fn request(&mut self, command: u16, offset: u64, length: u32, data: &[u8]) -> Vec<u8> {
        let mut request = 0x2560_9513u32.to_be_bytes().to_vec();
        request.extend(0u16.to_be_bytes());
        request.extend(command.to_be_bytes());
        request.extend(1u64.to_be_bytes());
        request.extend(offset.to_be_bytes());
        request.extend(length.to_be_bytes());
        request.extend(data);
        self.0.write_all(&request).expect("sent");
        let mut reply = [0; 16];
        self.0.read_exact(&mut reply).expect("a reply");
        assert_eq!(&reply[4..8], [0; 4], "error in a reply");
        let mut answer = vec![0; if command == 0 { length as usize } else { 0 }];
        self.0.read_exact(&mut answer).expect("data");
        answer
    }

    pub fn write(&mut self, offset: u64, data: &[u8]) {
        self.request(1, offset, data.len() as u32, data);
    }

    pub fn read(&mut self, offset: u64, length: u32) -> Vec<u8> {
        self.request(0, offset, length, &[])
    }

    /// Waits until the server closes the connection.
    pub fn wait_until_closed(mut self) {
        let mut byte = [0];
        match self.0.read(&mut byte) {
            Ok(0) => {}
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => {}
            other => panic!("still open: {other:?}"),
        }
    }
}
