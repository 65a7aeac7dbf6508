//! Whether hosts answer: each is asked every few seconds.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{Method, Response, header};
use http_body_util::{BodyExt, Limited};
use hyper::body::{Bytes, Incoming};
use serde::de::DeserializeOwned;
use tokio::sync::watch as channel;
use tokio::task::JoinHandle;

use super::{Hosts, Way};
use crate::api::{Alerts, Health, HostView, ObjectsDevice, PREFIX, Version};
use crate::clock::now_ms;
use crate::{Failure, Kind};

/// How often each is asked.
const EVERY: Duration = Duration::from_secs(3);
/// How long a host may take for all its answers.
const PATIENCE: Duration = Duration::from_secs(30);
/// The longest answer that is taken, bytes.
const ANSWER: usize = 4 << 20;

/// Asks every host now and then, until the service stops.
pub async fn watch(hosts: Arc<Hosts>, mut stop: channel::Receiver<bool>) {
    let mut asking: HashMap<String, JoinHandle<()>> = HashMap::new();
    loop {
        asking.retain(|_, asked| !asked.is_finished());
        for HostView { name, .. } in hosts.views() {
            // One that has not answered yet is not asked once more meanwhile.
            if asking.contains_key(&name) {
                continue;
            }
            let (hosts, key) = (Arc::clone(&hosts), name.clone());
            let asked = tokio::spawn(async move {
                let asked = tokio::time::timeout(PATIENCE, ask(&hosts, &name)).await.unwrap_or_else(|_| {
                    Err(Failure::unreachable(format!("no whole answer in {} s", PATIENCE.as_secs())))
                });
                hosts.found(&name, |view| match asked {
                    Ok((version, health, alerts, objects)) => {
                        view.reachable = true;
                        view.error = None;
                        view.seen_ms = Some(now_ms());
                        view.version = Some(version.version);
                        view.attached = Some(health.attached as u64);
                        view.failed = Some(health.failed as u64);
                        view.alerts = Some(alerts.alerts.len() as u64);
                        view.objects = objects;
                    }
                    Err(failure) => {
                        view.reachable = false;
                        view.error = Some(failure.error);
                    }
                });
            });
            asking.insert(key, asked);
        }
        tokio::select! {
            () = tokio::time::sleep(EVERY) => {}
            _ = stop.wait_for(|stop| *stop) => return,
        }
    }
}

type Found = (Version, Health, Alerts, Option<Vec<ObjectsDevice>>);

async fn ask(hosts: &Hosts, name: &str) -> Result<Found, Failure> {
    let way = hosts.way(name)?;
    let objects = match get(&way, "/objects").await {
        Ok(objects) => Some(objects),
        Err(failure) if failure.kind == Kind::NotFound => None,
        Err(failure) => return Err(failure),
    };
    Ok((get(&way, "/version").await?, get(&way, "/health").await?, get(&way, "/alerts").await?, objects))
}

/// Asks a host for something, and takes its answer apart.
pub async fn get<T: DeserializeOwned>(way: &Way, path: &str) -> Result<T, Failure> {
    let headers = [(header::AUTHORIZATION.to_string(), format!("Bearer {}", way.key))];
    take(way.remote.send(Method::GET, &format!("{PREFIX}{path}"), &headers, Bytes::new()).await?).await
}

/// What an answer says, or why it is none.
///
/// # Errors
/// The host says no, or nothing that is understood.
pub async fn take<T: DeserializeOwned>(response: Response<Incoming>) -> Result<T, Failure> {
    let status = response.status();
    let broken = |what: String| Failure::unreachable(format!("its answer: {what}"));
    let body = Limited::new(response.into_body(), ANSWER).collect().await.map_err(|error| broken(error.to_string()))?;
    let body = body.to_bytes();
    if !status.is_success() {
        return Err(serde_json::from_slice(&body).unwrap_or_else(|_| broken(format!("status {status}"))));
    }
    let body: &[u8] = if body.is_empty() { b"null" } else { &body };
    serde_json::from_slice(body).map_err(|error| broken(error.to_string()))
}
