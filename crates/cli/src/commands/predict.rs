//! `vsl format --predict`: what each capacity would do to a workload.

use std::fmt::Write as _;
use std::time::Duration;

use daemon::Failure;
use daemon::api::{Job, JobResult, JobState, Prediction, PredictionChoice, PredictionRequest};
use device::Capacity;
use hyper::Method;

use crate::args::Format;
use crate::output::Output;
use crate::progress::bar;

/// How often the service is asked how far it is.
const EVERY: Duration = Duration::from_millis(200);

pub fn predict(args: &Format, output: Output) -> Result<(), Failure> {
    let client = super::client()?;
    let request = PredictionRequest {
        device: Some(client.attached(&args.device)?.text("name").to_string()),
        workload: args.workload.clone(),
        // A capacity that was named stands beside the one that there is.
        capacities: (args.capacity != Capacity::Advertised)
            .then(|| vec![Capacity::Advertised.to_string(), args.capacity.to_string()]),
        ..PredictionRequest::default()
    };
    let mut job: Job = client.send(Method::POST, "/predictions", &request)?;
    let bar = bar(output, "{bar:30} {percent:>3} %  {msg}")?;
    bar.set_length(100);
    while job.state == JobState::Running {
        std::thread::sleep(EVERY);
        job = client.get(&format!("/jobs/{}", job.id))?;
        bar.set_position((job.progress * 100.0) as u64);
        bar.set_message(job.what.clone());
    }
    bar.finish_and_clear();
    match job.result {
        Some(JobResult::Prediction(prediction)) => output.result(&prediction, || table(&prediction)),
        _ => Err(Failure::failed(job.error.unwrap_or_else(|| "the prediction was cancelled".into()))),
    }
}

/// A line for each capacity. Where the store decides how fast the device is, there are no columns of that.
fn table(prediction: &Prediction) -> String {
    type Column = (&'static str, fn(&PredictionChoice) -> Option<String>);
    let columns: [Column; 8] = [
        ("capacity", |choice| Some(choice.capacity.clone())),
        ("size", |choice| Some(size::short(choice.bytes))),
        ("over-provisioning", |choice| Some(format!("{:.1} %", choice.over_provisioning_percent))),
        ("write amplification", |choice| choice.write_amplification.map(|amplification| format!("{amplification:.2}"))),
        ("IOPS", |choice| choice.iops.map(|iops| format!("{iops:.0}"))),
        ("MB/s", |choice| choice.bytes_per_s.map(|rate| format!("{:.1}", rate / 1e6))),
        ("p99", |choice| choice.p99_us.map(|us| format!("{us:.0} us"))),
        ("life", |choice| choice.lifetime_days.map(|days| format!("{days:.0} days"))),
    ];
    let of = prediction.profile.as_deref().unwrap_or("the layer alone: how fast the device is, its store decides");
    let mut text = format!("workload {}, modelled; {of}\n", prediction.workload);
    let lines = std::iter::once(None).chain(prediction.choices.iter().map(Some));
    for choice in lines {
        for (at, (title, cell)) in columns.iter().enumerate() {
            if prediction.choices.iter().all(|choice| cell(choice).is_none()) {
                continue;
            }
            let cell = choice.map_or_else(|| (*title).to_owned(), |choice| cell(choice).unwrap_or_else(|| "-".into()));
            let _ = if at == 0 { write!(text, "{cell:18}") } else { write!(text, "  {cell:>0$}", title.len().max(10)) };
        }
        text.push('\n');
    }
    text
}
