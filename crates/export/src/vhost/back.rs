//! What we tell a front end by ourselves: that the configuration space has changed, since the disk has another size.
//!
//! A front end gives us a socket for that (`SET_BACKEND_REQ_FD`). The `vhost` crate keeps that socket to itself and has no such message, so this one
//! request of the front end's is read here.

use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, recvmsg, send};

/// The front end's request that brings the socket.
const SET_BACKEND_REQ_FD: u32 = 21;
/// Our message: the configuration space has changed.
const CONFIG_CHANGE: u32 = 2;
/// Flags of a header: the version, an answer, an answer that is asked for.
const VERSION: u32 = 1;
const REPLY: u32 = 1 << 2;
const NEED_REPLY: u32 = 1 << 3;
/// Bytes of a header: request, flags, and the bytes that follow.
pub const HEADER_BYTES: usize = 12;

/// A header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    request: u32,
    flags: u32,
    /// Bytes that follow.
    pub size: u32,
}

impl Header {
    /// As it came.
    pub fn decode(bytes: &[u8; HEADER_BYTES]) -> Header {
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        Header { request: word(0), flags: word(4), size: word(8) }
    }

    fn encode(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        for (to, word) in bytes.chunks_exact_mut(4).zip([self.request, self.flags, self.size]) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// Whether the message brings the socket by which the front end is told something.
    pub fn brings_socket(&self) -> bool {
        self.request == SET_BACKEND_REQ_FD
    }
}

/// The socket by which a front end is told something.
#[derive(Debug)]
pub struct Back(OwnedFd);

impl Back {
    /// Reads the message that brings it, which is there, and answers it where the front end wants that.
    ///
    /// # Errors
    /// It is no such message, or brings no Unix stream socket.
    pub fn receive(from: impl AsFd) -> io::Result<Back> {
        let wrong = |what: &str| io::Error::new(io::ErrorKind::InvalidData, format!("SET_BACKEND_REQ_FD: {what}"));
        let mut bytes = [0; HEADER_BYTES];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let received = recvmsg(&from, &mut [IoSliceMut::new(&mut bytes)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
        let header = Header::decode(&bytes);
        if received.bytes != HEADER_BYTES || !header.brings_socket() || header.size != 0 {
            return Err(wrong("expected a header and nothing behind it"));
        }
        let mut fds = Vec::new();
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = message {
                fds.extend(rights);
            }
        }
        let (Some(fd), true) = (fds.pop(), fds.is_empty()) else { return Err(wrong("expected one descriptor")) };
        let is_stream = rustix::net::sockopt::socket_type(&fd)? == rustix::net::SocketType::STREAM;
        if !is_stream || rustix::net::sockopt::socket_domain(&fd)? != rustix::net::AddressFamily::UNIX {
            return Err(wrong("expected a Unix stream socket"));
        }
        if header.flags & NEED_REPLY != 0 {
            let mut answer = Header { flags: VERSION | REPLY, size: 8, ..header }.encode().to_vec();
            answer.extend([0; 8]);
            send(&from, &answer, SendFlags::NOSIGNAL)?;
        }
        Ok(Back(fd))
    }

    /// Tells the front end that the configuration space has changed. Waits for nobody.
    ///
    /// # Errors
    /// It does not listen.
    pub fn config_changed(&self) -> io::Result<()> {
        let header = Header { request: CONFIG_CHANGE, flags: VERSION, size: 0 };
        match send(&self.0, &header.encode(), SendFlags::NOSIGNAL | SendFlags::DONTWAIT)? {
            HEADER_BYTES => Ok(()),
            // The rest would have to follow, and nobody may wait for that here.
            _ => Err(io::ErrorKind::WriteZero.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{IoSlice, Read};
    use std::os::unix::net::UnixStream;

    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, sendmsg};

    use super::*;

    fn bring(fd: impl AsFd, header: Header) -> (UnixStream, io::Result<Back>) {
        let (front, ours) = UnixStream::pair().expect("a pair of sockets");
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let fds = [fd.as_fd()];
        assert!(control.push(SendAncillaryMessage::ScmRights(&fds)));
        sendmsg(&front, &[IoSlice::new(&header.encode())], &mut control, SendFlags::empty()).expect("sent");
        (front, Back::receive(&ours))
    }

    #[test]
    fn a_front_end_that_brings_a_socket_is_answered_and_told() {
        let (mut theirs, ours) = UnixStream::pair().expect("a pair of sockets");
        let header = Header { request: SET_BACKEND_REQ_FD, flags: VERSION | NEED_REPLY, size: 0 };
        let (mut front, back) = bring(&ours, header);
        let mut answer = [0; 20];
        front.read_exact(&mut answer).expect("an answer");
        assert_eq!(answer[..12], Header { request: SET_BACKEND_REQ_FD, flags: 5, size: 8 }.encode());
        assert_eq!(answer[12..], [0; 8]);
        back.expect("a socket").config_changed().expect("told");
        let mut told = [0; HEADER_BYTES];
        theirs.read_exact(&mut told).expect("a message");
        assert_eq!(told, [2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn what_is_no_socket_is_refused() {
        let file = std::fs::File::open("/dev/null").expect("a file");
        let header = Header { request: SET_BACKEND_REQ_FD, flags: VERSION, size: 0 };
        assert!(bring(&file, header).1.is_err());
        let (_theirs, ours) = UnixStream::pair().expect("a pair of sockets");
        assert!(bring(&ours, Header { size: 4, ..header }).1.is_err());
        assert!(bring(&ours, Header { request: 3, ..header }).1.is_err());
    }
}
