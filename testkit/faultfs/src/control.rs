//! The control socket: one JSON object a line, answered by one JSON object a line.
//!
//! | request | what it does |
//! |---|---|
//! | `{"cut": "drop"}` | cuts the power: all that no sync covered is lost, and everything fails with EIO |
//! | `{"cut": {"torn": 7}}` | the same, but by the seed each change that no sync covered is lost, kept or torn, some with a flipped bit |
//! | `{"cut": {"tears": 7}}` | the same without flipped bits |
//! | `"switch_on"` | ends the power cut; files that were open stay unusable |
//! | `{"fault": RULE}` | puts a [`Rule`] in force, and gives its number as `id` |
//! | `{"lift": 3}`, `{"lift": null}` | lifts one rule, or all |
//! | `"state"` | whether the power is on, cuts and what they did, operations by kind, changes not synced yet, the rules and how often each happened |
//!
//! An answer has `"ok": true`, or `"ok": false` and an `error`.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::thread;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::dice::Cut;
use crate::mount::FaultFs;
use crate::rules::Rule;

/// The longest request, bytes.
const LONGEST: u64 = 64 << 10;

#[derive(Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Request {
    Cut(Cut),
    SwitchOn,
    Fault(Rule),
    Lift(Option<u64>),
    State,
}

/// Answers on the socket as long as the process lives.
pub fn serve(listener: &UnixListener, files: &FaultFs) {
    for stream in listener.incoming().flatten() {
        let files = files.clone();
        thread::spawn(move || {
            // A client that went away needs no answer.
            let _ = converse(stream, &files);
        });
    }
}

fn converse(stream: UnixStream, files: &FaultFs) -> io::Result<()> {
    let mut input = BufReader::new(stream.try_clone()?);
    let mut output = stream;
    loop {
        let mut line = String::new();
        if (&mut input).take(LONGEST).read_line(&mut line)? == 0 {
            return Ok(());
        }
        let answer = match answer(&line, files) {
            Ok(mut answer) => {
                answer["ok"] = json!(true);
                answer
            }
            Err(error) => json!({"ok": false, "error": error}),
        };
        output.write_all(format!("{answer}\n").as_bytes())?;
    }
}

fn answer(line: &str, files: &FaultFs) -> Result<Value, String> {
    match serde_json::from_str(line).map_err(|error| format!("request {:?}: {error}", line.trim()))? {
        Request::Cut(cut) => {
            let damage = files.cut(cut).map_err(|error| format!("the store failed: {error}"))?;
            Ok(json!({"unsynced": damage.unsynced, "kept": damage.kept}))
        }
        Request::SwitchOn => {
            files.disk().switch_on();
            Ok(json!({}))
        }
        Request::Fault(rule) => match rule.nonsense() {
            Some(why) => Err(why.into()),
            None => Ok(json!({"id": files.disk().rules.add(rule)})),
        },
        Request::Lift(id) => match files.disk().rules.lift(id) {
            true => Ok(json!({})),
            false => Err(format!("no rule {}", id.unwrap_or(0))),
        },
        Request::State => {
            let disk = files.disk();
            let counts: serde_json::Map<_, _> = disk
                .counts()
                .iter()
                .filter_map(|(kind, count)| Some((json!(kind).as_str()?.to_owned(), json!(count))))
                .collect();
            let rules = disk.rules.in_force();
            Ok(
                json!({"on": disk.is_on(), "cuts": disk.era(), "damage": disk.damage(), "counts": counts, "unsynced": disk.unsynced(), "rules": rules}),
            )
        }
    }
}
