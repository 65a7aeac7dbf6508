//! Alerts by HTTP: posted as JSON, signed where a secret is given.

use axum::http::{Method, Uri};
use ring::hmac;

use crate::access::secret::hex;
use crate::api::{Alert, Webhook};
use crate::remote::{Remote, Trust};
use crate::{Failure, remote};

/// How it is called in lists: without its path, which often is a secret.
pub fn name(hook: &Webhook) -> String {
    without_path(&hook.url)
}

/// An address as far as its host and port.
pub fn without_path(url: &str) -> String {
    let end = url.find("://").map_or(0, |at| at + 3);
    let host = url.get(end..).and_then(|rest| rest.find(['/', '?', '#']));
    host.map_or(url, |at| &url[..end + at]).to_string()
}

/// Whether it could be posted there at all.
pub fn check(hook: &Webhook) -> Result<(), Failure> {
    let uri: Uri = hook.url.parse().map_err(|error| {
        Failure::invalid(format!("webhook: '{}': {error}", hook.url.escape_debug()))
            .help("write it like https://example.org/hook")
    })?;
    remote::parse(&uri).map(drop)
}

/// Posts it.
pub async fn send(hook: &Webhook, alert: &Alert) -> Result<(), String> {
    let uri: Uri = hook.url.parse().map_err(|error| format!("{error}"))?;
    let body = serde_json::to_vec(alert).map_err(|error| error.to_string())?;
    let mut headers = vec![("content-type".to_string(), "application/json".to_string())];
    if let Some(secret) = &hook.secret {
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
        let signature = hex(hmac::sign(&key, &body).as_ref());
        headers.push(("x-openvsl-signature".into(), format!("sha256={signature}")));
    }
    let remote = Remote::new(&uri, &Trust::System).map_err(|failure| failure.to_string())?;
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let response =
        remote.send(Method::POST, path, &headers, body.into()).await.map_err(|failure| failure.to_string())?;
    let status = response.status();
    if status.is_success() { Ok(()) } else { Err(format!("it answered {status}")) }
}
