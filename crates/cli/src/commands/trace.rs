//! `vsl trace`.

use std::path::Path;
use std::process::ExitCode;

use daemon::api::{EndedRecording, RecordRequest, RecordStatus};
use daemon::{Failure, fields};
use hyper::Method;
use serde_json::json;
use trace::generate::MailServer;
use trace::info::{characterise, table};
use trace::{Format, Left, OutputFormat, Reader, TraceError, Writer};

use crate::args::trace::{Convert, Generate, Info, Record, Trace};
use crate::output::Output;
use crate::progress::{INTERRUPTED, Interrupt};

pub fn trace(args: &Trace, output: Output) -> Result<ExitCode, Failure> {
    match args {
        Trace::Info(args) => info(args, output),
        Trace::Convert(args) => convert(args, output).map(|()| ExitCode::SUCCESS),
        Trace::Generate(Generate::MailServer(args)) => {
            let server = MailServer { bytes: args.size, per_second: args.rate, seed: args.seed };
            let requests = server.requests().map_err(Failure::invalid)?;
            let format = format_of(&args.to, args.to_format)?;
            let name = volume_name(&args.to);
            let mut writer = Writer::create(&args.to, format, move |_| name.clone()).map_err(failure)?.from_epoch(0);
            for record in requests.take(usize::try_from(args.records).unwrap_or(usize::MAX)) {
                writer.write(&record).map_err(failure)?;
            }
            written(&args.to, format, writer, output).map(|()| ExitCode::SUCCESS)
        }
        Trace::Record(args) => record(args, output).map(|()| ExitCode::SUCCESS),
        Trace::ListFormats => list(output).map(|()| ExitCode::SUCCESS),
    }
}

/// A trace that makes no sense, or a file that is not there, is for whoever named it to put right.
pub fn failure(error: TraceError) -> Failure {
    Failure::invalid(error.to_string())
}

fn info(args: &Info, output: Output) -> Result<ExitCode, Failure> {
    let interrupt = Interrupt::listen()?;
    let reader = Reader::open(&args.file, &args.input.wanted()).map_err(failure)?;
    let info = characterise(reader, |_| !interrupt.came()).map_err(failure)?;
    if let Some(path) = &args.html {
        let page = report::trace_page(&info, env!("CARGO_PKG_VERSION"));
        let written = std::fs::write(path, page.html());
        written.map_err(|error| Failure::failed(format!("{}: {error}", path.display())))?;
        output.note(&format!("written: {}", path.display()));
    }
    output.result(&info, || table(&info))?;
    Ok(if interrupt.came() { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS })
}

fn convert(args: &Convert, output: Output) -> Result<(), Failure> {
    let format = format_of(&args.to, args.to_format)?;
    let mut reader = Reader::open(&args.file, &args.input.wanted()).map_err(failure)?;
    let (given, volumes) = (args.file_name.clone(), reader.format().volumes());
    // The names of files are known only once they were read, and volumes have none: so both are numbered.
    let name =
        move |volume| given.clone().unwrap_or_else(|| format!("volume{}", volumes.show(volume).replace(',', "_")));
    let mut writer = Writer::create(&args.to, format, name).map_err(failure)?;
    for record in reader.by_ref() {
        record.and_then(|record| writer.write(&record)).map_err(failure)?;
    }
    written(&args.to, format, writer, output)
}

fn record(args: &Record, output: Output) -> Result<(), Failure> {
    let client = super::client()?;
    let name = client.attached(&args.device)?.text("name").to_string();
    let path = format!("/devices/{name}/record");
    if args.ended {
        return list_ended(&client.get::<Vec<EndedRecording>>(&format!("{path}ings"))?, output);
    }
    let status: RecordStatus = match &args.to {
        Some(to) => {
            let format = format_of(to, args.to_format)?;
            let to = std::path::absolute(to).map_err(|error| Failure::io(to, &error))?;
            let request = RecordRequest { path: to, format: Some(format.name().into()) };
            client.send(Method::POST, &path, &request)?
        }
        None if args.stop => client.send(Method::POST, &format!("{path}/stop"), &json!({}))?,
        None => client.get(&path)?,
    };
    output.result(&status, || {
        let file = status.path.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
        let dropped = match status.dropped {
            0 => String::new(),
            count => format!(", {count} left out because the file was too slow"),
        };
        match (status.recording, status.path.is_some()) {
            (true, _) => format!("recording {name} to {file}: {} requests{dropped}\n", status.written),
            (false, true) => format!("recorded {name} to {file}: {} requests{dropped}\n", status.written),
            (false, false) => format!("{name} is not being recorded\n"),
        }
    })
}

fn list_ended(ended: &[EndedRecording], output: Output) -> Result<(), Failure> {
    output.result(&json!({ "recordings": ended }), || {
        let lines = ended.iter().map(|one| {
            let time = fields::show(fields::Unit::Time, &json!(one.ended_ms / 1000));
            let gone = if one.exists { "" } else { ", the file is gone" };
            let error = one.error.as_ref().map(|error| format!(", {error}")).unwrap_or_default();
            format!("{time}  {}  {} requests, {} left out{gone}{error}\n", one.path.display(), one.written, one.dropped)
        });
        lines.collect()
    })
}

/// The end of a new trace, and what it could not say.
fn written(path: &Path, format: OutputFormat, writer: Writer, output: Output) -> Result<(), Failure> {
    let records = writer.written();
    let Left { records: left, widened, volumes_merged } = writer.finish().map_err(failure)?;
    let value = json!({
        "path": path.display().to_string(),
        "format": format.name(),
        "records": records - left,
        "left_out": left,
        "widened": widened,
        "volumes_merged": volumes_merged,
    });
    output.result(&value, || {
        let mut text = format!("{}: {} requests written as {format}\n", path.display(), records - left);
        for (count, what) in [
            (left, "requests left out, which the format cannot say"),
            (widened, "requests widened to sectors of 512 bytes"),
            (volumes_merged, "requests of other volumes than the first one's, which the format does not tell apart"),
        ] {
            if count > 0 {
                text.push_str(&format!("{count} {what}\n"));
            }
        }
        text
    })
}

fn format_of(path: &Path, given: Option<OutputFormat>) -> Result<OutputFormat, Failure> {
    given.or_else(|| OutputFormat::of_name(path)).ok_or_else(|| {
        Failure::invalid(format!("{}: its ending names no format", path.display()))
            .help("give --to-format fio3, vscsi2, vscsi-csv or msr, or a name ending in .iolog, .vscsi or .csv")
    })
}

/// What fio calls the one volume of a made-up trace.
fn volume_name(path: &Path) -> String {
    path.file_name().and_then(|name| name.to_str()?.split('.').next()).unwrap_or("volume0").to_owned()
}

fn list(output: Output) -> Result<(), Failure> {
    let written = |format: Format| OutputFormat::ALL.into_iter().find(|output| output.name() == format.name());
    let rows: Vec<_> = Format::ALL
        .into_iter()
        .map(|format| {
            json!({
                "name": format.name(),
                "about": format.about(),
                "recognised": format.is_recognised(),
                "written": written(format).is_some(),
                "limits": written(format).map(OutputFormat::limits),
            })
        })
        .collect();
    output.result(&json!({ "formats": rows, "compression": ["gzip", "zstd", "xz", "bzip2"] }), || {
        let mut text = format!("{:<11} {:<8} {}\n", "format", "written", "what it is");
        for format in Format::ALL {
            let yes = if written(format).is_some() { "yes" } else { "" };
            text.push_str(&format!("{:<11} {yes:<8} {}\n", format.name(), format.about()));
        }
        text.push_str("\nAll are recognised by their content, but blkparse-q, which has to be named. Files may be compressed with gzip, zstd, xz or bzip2.\n");
        text
    })
}
