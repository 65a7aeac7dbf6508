//! The first words of a connection: ICReq, and Connect of a queue.

use std::io::{self, IoSlice, Read, Write};

use nvme::auth::Responder;
use nvme::command::{admin, fabrics};
use nvme::fabrics::{CONNECT_DATA_BYTES, Connect};
use nvme::pdu::{self, COMMON_BYTES, Common, Digests, Fatal, INIT_BYTES, Init, Kind};
use nvme::{Cqe, Data, Sqe, Status};

use crate::jobs::Payload;
use crate::output::{Output, SEGMENTS};
use crate::pool::Pool;

/// A queue that the device's thread has let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Joined {
    /// Which, and of which controller.
    pub admitted: nvme::Admitted,
    /// The device as the host will see it for as long as it is connected.
    pub namespace: nvme::Namespace,
}

/// Data in one H2CData at most, bytes: the largest write in one piece, which goes to the device from where it was received.
const MAX_DATA: u32 = 1 << 20;

/// Why a handshake ended.
#[derive(Debug, thiserror::Error)]
pub enum Ended {
    /// The socket failed, or the host took too long.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The host sent what does not belong there.
    #[error("{0}")]
    Protocol(Fatal),
    /// It was refused.
    #[error("refused with status {:#06x}", .0.code())]
    Refused(Status),
    /// It did not prove who it is.
    #[error("authentication failed: {0}")]
    Unknown(String),
}

/// A connection that is initialized.
#[derive(Clone, Copy, Debug)]
pub struct Agreed {
    /// Digests that are used.
    pub digests: Digests,
    /// Alignment that the host wants of data, bytes.
    pub align: usize,
}

impl Agreed {
    /// Puts the answer to a command into the output: its data, and its completion unless the data are to say that it succeeded.
    #[inline]
    pub fn answer(&self, output: &mut Output, pool: &mut Pool, answer: &Cqe, data: Payload, short: bool) {
        let len = data.len();
        if len > 0 {
            let part = pdu::Transfer { cid: answer.cid, tag: 0, offset: 0, len: len as u32 };
            output.small(part.from_controller(short, self.digests, self.align).as_bytes());
            let mut digest = self.digests.data.then(pdu::Summing::default);
            for piece in data.into_pieces() {
                if let Some(digest) = &mut digest {
                    digest.update(&piece);
                }
                output.payload(piece, pool);
            }
            if let Some(digest) = digest {
                output.small(&digest.finish());
            }
        }
        if len == 0 || !short {
            output.small(pdu::response(answer, self.digests).as_bytes());
        }
    }
}

/// Ends a connection with a reason.
fn terminate(socket: &mut (impl Read + Write), (why, field): (Fatal, u32), unit: &[u8]) -> Ended {
    // The connection ends either way.
    let _ = socket.write_all(&pdu::terminate(Kind::C2HTermReq, why, field, unit));
    Ended::Protocol(why)
}

/// Answers ICReq.
///
/// # Errors
/// The host speaks another language, or the socket failed.
pub fn initialize(socket: &mut (impl Read + Write)) -> Result<Agreed, Ended> {
    let mut unit = [0; INIT_BYTES];
    socket.read_exact(&mut unit[..COMMON_BYTES])?;
    // Whoever speaks something else is told so before more is waited for.
    let mut common = [0; COMMON_BYTES];
    common.copy_from_slice(&unit[..COMMON_BYTES]);
    match Common::decode(&common, Digests::default(), 0) {
        Ok(found) if found.kind == Kind::IcReq && found.len == INIT_BYTES => {}
        Ok(_) => return Err(terminate(socket, (Fatal::Sequence, 0), &common)),
        Err(error) => return Err(terminate(socket, error, &common)),
    }
    socket.read_exact(&mut unit[COMMON_BYTES..])?;
    let asked = Init::decode(Kind::IcReq, &unit).map_err(|error| terminate(socket, error, &unit))?;
    let answer = Init { align: 4, digests: asked.digests, limit: MAX_DATA };
    socket.write_all(answer.response().as_bytes())?;
    Ok(Agreed { digests: asked.digests, align: asked.align })
}

/// Reads one command and the data in its capsule, at most so many bytes.
///
/// # Errors
/// It is no command, or the socket failed.
pub fn read_command(socket: &mut (impl Read + Write), agreed: &Agreed, most: usize) -> Result<(Sqe, Vec<u8>), Ended> {
    let mut unit = vec![0; COMMON_BYTES];
    socket.read_exact(&mut unit)?;
    let mut common = [0; COMMON_BYTES];
    common.copy_from_slice(&unit);
    let found = Common::decode(&common, agreed.digests, most).map_err(|error| terminate(socket, error, &common))?;
    if found.kind != Kind::CapsuleCmd {
        return Err(terminate(socket, (Fatal::Sequence, 0), &common));
    }
    unit.resize(found.len, 0);
    socket.read_exact(&mut unit[COMMON_BYTES..])?;
    if !found.header_is_sound(&unit) {
        return Err(terminate(socket, (Fatal::HeaderDigest, 0), &unit));
    }
    if !found.data_are_sound(&unit) {
        // There is no session yet that could go on.
        return Err(terminate(socket, (Fatal::InvalidHeader, 0), &unit));
    }
    Ok((pdu::entry(&unit), found.data(&unit).to_vec()))
}

/// Reads Connect.
///
/// # Errors
/// Something else came, or what it asks for is refused; that is answered already.
pub fn read_connect(socket: &mut (impl Read + Write), agreed: &Agreed) -> Result<(u16, Connect), Ended> {
    let (entry, data) = read_command(socket, agreed, pdu::ADMIN_IN_CAPSULE_BYTES as usize)?;
    let is_connect = entry.opcode() == admin::FABRICS && entry.function() == fabrics::CONNECT;
    let data: Option<&[u8; CONNECT_DATA_BYTES]> = data.as_slice().try_into().ok();
    let status = match (is_connect, entry.data(), data) {
        (true, Ok(Data::InCapsule(_)), Some(data)) => match Connect::decode(&entry, data) {
            Ok(connect) => return Ok((entry.cid(), connect)),
            Err(refused) => return Err(refuse(socket, agreed, refused)),
        },
        (false, ..) => Status::SEQUENCE_ERROR,
        (true, ..) => Status::SGL_LENGTH_INVALID,
    };
    Err(refuse(socket, agreed, Cqe::new(entry.cid(), status)))
}

/// Lets a host prove who it is, whose Connect is answered. How many commands of the queue that took, Connect among them.
///
/// # Errors
/// It did not, or the socket failed.
pub fn authenticate(socket: &mut (impl Read + Write), agreed: &Agreed, mut responder: Responder) -> Result<u16, Ended> {
    let mut taken = 1;
    while !responder.is_done() {
        let (entry, data) = read_command(socket, agreed, pdu::ADMIN_IN_CAPSULE_BYTES as usize)?;
        taken += 1;
        let done = |status| Cqe { sq_head: taken, ..Cqe::new(entry.cid(), status) };
        let function = (entry.opcode() == admin::FABRICS).then(|| entry.function());
        match function {
            Some(fabrics::AUTHENTICATION_SEND) => {
                responder.send(&data);
                answer(socket, agreed, &done(Status::SUCCESS), &[])?;
            }
            Some(fabrics::AUTHENTICATION_RECEIVE) => {
                let room = entry.dword(11).min(entry.data().map_or(0, Data::len)) as usize;
                match responder.receive(room) {
                    Ok(mut message) => {
                        // As long as was asked for, as other targets do.
                        message.resize(room, 0);
                        answer(socket, agreed, &done(Status::SUCCESS), &message)?;
                    }
                    Err(_) => answer(socket, agreed, &done(Status::SGL_LENGTH_INVALID), &[])?,
                }
            }
            // Nothing else before the host is known.
            _ => answer(socket, agreed, &done(Status::AUTHENTICATION_REQUIRED), &[])?,
        }
        if let Some(failure) = responder.failure() {
            return Err(Ended::Unknown(failure.to_string()));
        }
    }
    Ok(taken)
}

/// Answers a command.
///
/// # Errors
/// The socket failed.
pub fn answer(socket: &mut impl Write, agreed: &Agreed, answer: &Cqe, data: &[u8]) -> io::Result<()> {
    let (mut output, mut pool) = (Output::default(), Pool::default());
    agreed.answer(&mut output, &mut pool, answer, Payload::from(data.to_vec()), false);
    while !output.is_empty() {
        let mut slices = [IoSlice::new(&[]); SEGMENTS];
        let count = output.slices(&mut slices);
        let sent = socket.write_vectored(&slices[..count])?;
        output.advance(sent, &mut pool);
    }
    Ok(())
}

/// Refuses a command.
pub fn refuse(socket: &mut impl Write, agreed: &Agreed, refused: Cqe) -> Ended {
    match answer(socket, agreed, &refused, &[]) {
        Ok(()) => Ended::Refused(refused.status),
        Err(error) => Ended::Io(error),
    }
}
