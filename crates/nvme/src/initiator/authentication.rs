//! Proves a host on a link, message by message.

use std::io::{Read, Write};

use super::{Command, Error, Link};
use crate::auth::{Failure, Keys, MESSAGE_BYTES, Names, Policy, Requester, SystemEntropy};

fn send<S: Read + Write>(link: &mut Link<S>, message: Vec<u8>) -> Result<(), Error> {
    link.succeed("Authentication Send", Command::authentication_send(message)).map(drop)
}

fn receive<S: Read + Write>(link: &mut Link<S>) -> Result<Vec<u8>, Error> {
    let max = MESSAGE_BYTES as u32;
    Ok(link.succeed("Authentication Receive", Command::authentication_receive(max))?.data)
}

/// Authenticates a queue whose Connect succeeded.
pub(super) fn authenticate<S: Read + Write>(
    link: &mut Link<S>,
    names: Names,
    (keys, policy): (Keys, Policy),
) -> Result<(), Error> {
    let mut requester = Requester::new(keys, names, policy, Box::new(SystemEntropy::default()));
    let give_up = |link: &mut Link<S>, requester: &Requester, failure: Failure| {
        // The controller hears why, if it still listens; the host gives up either way.
        let _ = send(link, requester.give_up(failure));
        Error::Unauthenticated(failure)
    };
    send(link, requester.negotiate())?;
    let challenge = receive(link)?;
    let reply = requester.challenged(&challenge).map_err(|failure| give_up(link, &requester, failure))?;
    send(link, reply)?;
    let answer = receive(link)?;
    match requester.answered(&answer).map_err(|failure| give_up(link, &requester, failure))? {
        Some(last) => send(link, last),
        None => Ok(()),
    }
}
