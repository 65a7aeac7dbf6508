//! The live stream: server-sent events.

use std::convert::Infallible;
use std::time::Duration;

use axum::Extension;
use axum::extract::State;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::stream::{Stream, unfold};
use serde::Deserialize;
use tokio::sync::watch;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::Failure;
use crate::api::Sample;
use crate::monitor::{Data, Message, STREAMS, Subscription};
use crate::web::answer::{Ask, Service, viewers};
use crate::web::guard::Asker;

/// How often something is sent at least.
const ALIVE: Duration = Duration::from_secs(15);

/// It.
pub fn routes() -> OpenApiRouter<Service> {
    viewers(OpenApiRouter::new().routes(routes!(stream)))
}

/// Of which devices.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct Wanted {
    /// Names with commas in between; all by default.
    devices: Option<String>,
}

/// Each second as it comes, and what happens: server-sent events `sample`, `event`, `alert` and `job`.
#[utoipa::path(get, path = "/stream", tag = "telemetry", params(Wanted),
    responses((status = OK, content_type = "text/event-stream", body = String), (status = "default", body = Failure)))]
async fn stream(
    State(service): State<Service>,
    Extension(asker): Extension<Asker>,
    Ask(wanted): Ask<Wanted>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Failure> {
    let account = asker.session.map(|session| session.name).unwrap_or_default();
    let subscription = service.monitor.subscribe(&account).ok_or_else(|| {
        Failure::too_many(format!("{account} reads {STREAMS} streams already")).help("close a page of the console")
    })?;
    let only = wanted.devices.map(|names| names.split(',').map(str::to_string).collect::<Vec<_>>());
    let first = Message { event: "sample", data: Data::Sample(service.monitor.latest()) };
    let reader = Reader { subscription, only, stop: service.stop.subscribe(), first: Some(first) };
    let events = unfold(reader, async |mut reader| {
        let message = match reader.first.take() {
            Some(first) => first,
            None => tokio::select! {
                message = reader.subscription.next() => message?,
                _ = reader.stop.wait_for(|stop| *stop) => return None,
            },
        };
        Some((Ok(reader.event(&message)), reader))
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(ALIVE)))
}

struct Reader {
    subscription: Subscription,
    only: Option<Vec<String>>,
    stop: watch::Receiver<bool>,
    /// The last second, so that nobody has to wait for the next one.
    first: Option<Message>,
}

impl Reader {
    fn event(&self, message: &Message) -> Event {
        let event = Event::default().event(message.event);
        match &message.data {
            Data::Json(text) => event.data(text),
            Data::Sample(sample) => event.data(choose(sample, self.only.as_deref())),
        }
    }
}

/// A sample of the devices that are wanted, as JSON.
fn choose(sample: &Sample, only: Option<&[String]>) -> String {
    let text = match only {
        None => serde_json::to_string(sample),
        Some(only) => {
            let mut chosen = sample.clone();
            chosen.devices.retain(|name, _| only.contains(name));
            serde_json::to_string(&chosen)
        }
    };
    // Samples are names and finite numbers, of which there is always JSON.
    text.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_devices_that_are_wanted_are_told() {
        let mut sample = Sample::default();
        for name in ["a", "b"] {
            sample.devices.insert(name.into(), crate::api::DeviceSample::default());
        }
        let told = |only: Option<&[String]>| {
            let sample: Sample = serde_json::from_str(&choose(&sample, only)).expect("JSON");
            sample.devices.into_keys().collect::<Vec<_>>()
        };
        assert_eq!(told(None), ["a", "b"]);
        assert_eq!(told(Some(&["b".into(), "c".into()])), ["b"]);
    }
}
