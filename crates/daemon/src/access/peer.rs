//! Who is on the other end of the API's socket. Only the user who runs the service, and root, may use it.

use axum::Json;
use axum::extract::connect_info::Connected;
use axum::extract::{ConnectInfo, Request};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::serve::IncomingStream;
use tokio::net::UnixListener;

use crate::Failure;

/// The user on the other end, as the kernel tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Nothing when the kernel could not tell.
    pub uid: Option<u32>,
}

impl Connected<IncomingStream<'_, UnixListener>> for Peer {
    fn connect_info(stream: IncomingStream<'_, UnixListener>) -> Peer {
        Peer { uid: stream.io().peer_cred().ok().map(|credentials| credentials.uid()) }
    }
}

impl Peer {
    fn may_use(self, owner: u32) -> bool {
        self.uid.is_some_and(|uid| uid == 0 || uid == owner)
    }
}

/// Lets only the owner and root through.
pub async fn check(ConnectInfo(peer): ConnectInfo<Peer>, request: Request, next: Next) -> Response {
    let owner = rustix::process::geteuid().as_raw();
    if peer.may_use(owner) {
        return next.run(request).await;
    }
    tracing::warn!(uid = peer.uid, "refused a connection to the API");
    let who = peer.uid.map_or_else(|| "an unknown user".into(), |uid| format!("user {uid}"));
    let help = match owner {
        0 => "run vsl as root".into(),
        owner => format!("run vsl as user {owner} or as root"),
    };
    let failure = Failure::forbidden(format!("{who} may not use this service")).help(help);
    (StatusCode::FORBIDDEN, Json(failure)).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owner_and_root_pass() {
        assert!(Peer { uid: Some(1000) }.may_use(1000));
        assert!(Peer { uid: Some(0) }.may_use(1000));
        assert!(!Peer { uid: Some(1001) }.may_use(1000));
        assert!(!Peer { uid: Some(1001) }.may_use(0));
        assert!(!Peer { uid: None }.may_use(0));
    }
}
