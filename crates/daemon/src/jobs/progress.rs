//! How far a lab run is, by its journal, of which only what is new is read: a journal of a whole protocol becomes large.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;

use serde::Deserialize;
use serde::de::IgnoredAny;

/// The lines of a journal that say how far a run is.
#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Line {
    Plan { parts: Vec<IgnoredAny> },
    End {},
}

/// What is read of a journal at a time, bytes.
const PIECE: u64 = 1 << 20;

/// What a journal has shown so far.
pub(super) struct Progress {
    journal: PathBuf,
    /// Up to where it was read.
    read: u64,
    /// The begin of a line whose end was not there yet.
    rest: Vec<u8>,
    parts: usize,
    done: usize,
}

impl Progress {
    pub fn of(journal: PathBuf) -> Progress {
        Progress { journal, read: 0, rest: Vec::new(), parts: 0, done: 0 }
    }

    /// Reads what has come since it looked last.
    pub fn look(&mut self) {
        // There is none yet, or it cannot be read: then nothing is known.
        let Ok(mut file) = File::open(&self.journal) else { return };
        if file.metadata().is_ok_and(|data| data.len() < self.read) {
            // Somebody began it anew.
            *self = Progress::of(std::mem::take(&mut self.journal));
        }
        if file.seek(SeekFrom::Start(self.read)).is_err() {
            return;
        }
        loop {
            // What was read before an error counts: it is not read again.
            let before = self.rest.len();
            let result = (&mut file).take(PIECE).read_to_end(&mut self.rest);
            let count = self.rest.len() - before;
            self.read += count as u64;
            self.take_lines(before);
            if result.is_err() || count == 0 {
                return;
            }
        }
    }

    /// Takes the lines that are whole; there is no end of one before `from`.
    fn take_lines(&mut self, from: usize) {
        let Some(end) = self.rest[from..].iter().rposition(|byte| *byte == b'\n').map(|at| from + at) else { return };
        for line in self.rest[..end].split(|byte| *byte == b'\n') {
            match serde_json::from_slice(line) {
                Ok(Line::Plan { parts }) => self.parts = parts.len(),
                Ok(Line::End {}) => self.done += 1,
                _ => {}
            }
        }
        self.rest.drain(..=end);
    }

    /// The part that is done, from 0 to 1.
    pub fn share(&self) -> f64 {
        if self.parts == 0 { 0.0 } else { (self.done as f64 / self.parts as f64).min(1.0) }
    }

    /// The same in words.
    pub fn in_words(&self) -> String {
        format!("{} of {} parts", self.done, self.parts)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_is_new_is_read() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("journal");
        let mut progress = Progress::of(path.clone());
        progress.look();
        assert_eq!((progress.share(), progress.in_words().as_str()), (0.0, "0 of 0 parts"));
        let part = |name: &str| json!({ "part": name, "test": "t", "title": "T", "device": "d", "repeat": 0, "seed": 1, "steps": 1 });
        let end =
            |name: &str| format!("{}\n", json!({ "kind": "end", "part": name, "attempt": 1, "wall_seconds": 1.0 }));
        let plan = json!({ "kind": "plan", "version": 1, "left_out": [], "parts": [part("a"), part("b")] });
        let mut file = File::create(&path).expect("made");
        let mut write = |text: &str| file.write_all(text.as_bytes()).expect("written");
        write(&format!("{plan}\nno JSON at all\n"));
        progress.look();
        assert_eq!(progress.in_words(), "0 of 2 parts");
        // A line is counted once, when all of it is there.
        let first = end("a");
        let (begin, rest) = first.split_at(9);
        write(begin);
        progress.look();
        assert_eq!(progress.in_words(), "0 of 2 parts");
        write(rest);
        for _ in 0..3 {
            progress.look();
            assert_eq!((progress.share(), progress.in_words().as_str()), (0.5, "1 of 2 parts"));
        }
        // More than is read at a time.
        write(&format!("{}\n", "x".repeat(3 * PIECE as usize)));
        write(&end("b"));
        progress.look();
        assert_eq!((progress.share(), progress.rest.len()), (1.0, 0));
        let length = std::fs::metadata(&path).expect("there").len();
        assert_eq!(progress.read, length, "nothing was read twice");
        // Somebody begins it anew.
        std::fs::write(&path, format!("{plan}\n")).expect("written");
        progress.look();
        assert_eq!(progress.in_words(), "0 of 2 parts");
    }
}
