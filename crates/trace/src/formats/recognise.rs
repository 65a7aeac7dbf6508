//! Which format some bytes are of.

use super::{Format, Lines, alibaba, blkparse, fio, fiu, msr, tencent, vscsi, vscsi_csv};
use crate::input::fields::shown;

/// Lines that are looked at.
const LINES: usize = 32;

/// The format of a trace that begins so.
///
/// # Errors
/// None that is known: says what was seen.
pub fn recognise(beginning: &[u8]) -> Result<Format, String> {
    if beginning.is_empty() {
        return Err("it is empty".into());
    }
    for (header, format) in fio::HEADERS.iter().zip([Format::Fio2, Format::Fio3]) {
        if beginning.starts_with(header) {
            return Ok(format);
        }
    }
    let text = !beginning.iter().take(4096).any(|byte| *byte == 0);
    if !text {
        let found = [(Format::Vscsi1, vscsi::count(beginning, 1)), (Format::Vscsi2, vscsi::count(beginning, 2))];
        let best =
            found.into_iter().filter_map(|(format, count)| Some((count?, format))).max_by_key(|(count, _)| *count);
        return best.map(|(_, format)| format).ok_or_else(|| {
            "it is binary, and its records are not those of vscsi version 1 or 2; name one of those that `vsl trace list-formats` shows".into()
        });
    }
    let lines: Vec<&[u8]> = beginning
        .split_inclusive(|byte| *byte == b'\n')
        .take(LINES)
        .map(|line| line.strip_suffix(b"\n").unwrap_or(line))
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
        .collect();
    let judged = [
        (Format::VscsiCsv, Lines::<vscsi_csv::VscsiCsv>::judge(lines.iter().copied())),
        (Format::Msr, Lines::<msr::Msr>::judge(lines.iter().copied())),
        (Format::Alibaba, Lines::<alibaba::Alibaba>::judge(lines.iter().copied())),
        (Format::Tencent, Lines::<tencent::Tencent>::judge(lines.iter().copied())),
        (Format::Fiu, Lines::<fiu::Fiu>::judge(lines.iter().copied())),
        (Format::Blkparse, blkparse::judge(lines.iter().copied())),
    ];
    // A single bad line must not hide what all the others say: then the reader names the bad one.
    let best = judged.into_iter().filter(|(_, (good, bad))| *good >= (*bad).max(1)).max_by_key(|(_, (good, _))| *good);
    best.map(|(format, _)| format).ok_or_else(|| {
        let first = lines.iter().find(|line| !line.trim_ascii().is_empty() && !line.starts_with(b"#"));
        format!(
            "it is text whose lines are of no format that is known, such as '{}'; name one of those that `vsl trace list-formats` shows",
            shown(first.copied().unwrap_or_default())
        )
    })
}
