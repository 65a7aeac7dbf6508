//! A stream of bytes in a store, such as a backup: numbered parts, each an object of its own, in the order in which they are read.
//!
//! The parts of a stream that is cut off stay, and [`Archive::extend`] goes on behind them. Whether a stream is whole the bytes must say
//! themselves.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::time::Duration;

use media::object::{Answer, Ask, Failure};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use crate::{Address, AddressError, Store, client};

/// Bytes of a part; the last one may have fewer. Few enough requests to cost little, and little enough to hold some in memory.
pub const PART_BYTES: usize = 8 << 20;

/// Parts that are written or read at the same time.
const UNDER_WAY: usize = 4;

/// How often a request is tried, and how long one waits before the second attempt; twice as long before each one after it.
const ATTEMPTS: u32 = 8;
const FIRST_WAIT: Duration = Duration::from_millis(250);

/// Where a stream lies in a store.
#[derive(Clone, Debug)]
pub struct Archive {
    store: Store,
    runtime: &'static Runtime,
}

impl Archive {
    /// The stream at an address; nothing is asked of the store yet.
    ///
    /// # Errors
    /// The address, the endpoint or the environment make no sense, or no threads are to be had.
    pub fn at(address: &Address, endpoint: Option<&str>) -> Result<Archive, AddressError> {
        let store = Store::open(address, endpoint)?;
        let failed = |error: io::Error| AddressError::Open { address: address.to_string(), why: error.to_string() };
        Ok(Archive { store, runtime: client::upload_runtime().map_err(failed)? })
    }

    /// Begins a new stream.
    ///
    /// # Errors
    /// [`ErrorKind::AlreadyExists`] where there is one, or something else such as a device; or the store fails.
    pub fn create(self) -> io::Result<Upload> {
        // What stands deeper belongs to other addresses.
        match self.names()?.iter().any(|name| !name.contains('/')) {
            false => Ok(Upload::new(self, 0)),
            true => Err(ErrorKind::AlreadyExists.into()),
        }
    }

    /// Reads the stream, up to the first part that is missing.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] where there is no part, or the store fails.
    pub fn open(self) -> io::Result<Download> {
        match self.parts()? {
            0 => Err(ErrorKind::NotFound.into()),
            parts => {
                Ok(Download { archive: self, parts, next: 0, under_way: VecDeque::new(), part: Vec::new(), at: 0 })
            }
        }
    }

    /// Goes on with a stream behind its first `bytes`, which are read once more where they do not fill a part. What stood behind is deleted, the
    /// last part first: whoever reads meanwhile finds a stream that was cut off.
    ///
    /// # Errors
    /// The store fails, or does not hold that many bytes.
    pub fn extend(self, bytes: u64) -> io::Result<Upload> {
        let whole = u32::try_from(bytes / PART_BYTES as u64).map_err(|_| io::Error::from(ErrorKind::FileTooLarge))?;
        let rest = bytes % PART_BYTES as u64;
        let part = match rest {
            0 => Vec::new(),
            _ => self.runtime.block_on(get(self.store.clone(), whole))?,
        };
        let rest = part.get(..rest as usize).ok_or(ErrorKind::UnexpectedEof)?.to_vec();
        for number in (whole..self.last()?).rev() {
            self.runtime.block_on(ask(&self.store, || Ask::Delete { name: name(number) }))?;
        }
        let mut upload = Upload::new(self, whole);
        upload.part.extend(rest);
        Ok(upload)
    }

    /// Parts from the first one on, without a gap.
    fn parts(&self) -> io::Result<u32> {
        let numbers = self.numbers()?;
        Ok((0..).zip(&numbers).take_while(|(expected, found)| expected == *found).count() as u32)
    }

    /// The number behind the highest one.
    fn last(&self) -> io::Result<u32> {
        Ok(self.numbers()?.last().map_or(0, |last| last + 1))
    }

    fn numbers(&self) -> io::Result<Vec<u32>> {
        let mut numbers: Vec<u32> = self.names()?.iter().filter_map(|name| number(name)).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// All objects below the address.
    fn names(&self) -> io::Result<Vec<String>> {
        match self.runtime.block_on(attempts(|| self.store.names())) {
            Err(Failure::Missing) => Ok(Vec::new()),
            names => names.map_err(|failure| error(&failure)),
        }
    }
}

/// A part's name: eight digits, so that names sort as the parts do.
fn name(number: u32) -> String {
    format!("{number:08}.part")
}

fn number(name: &str) -> Option<u32> {
    let digits = name.strip_suffix(".part")?;
    digits.parse().ok().filter(|number| self::name(*number) == name)
}

/// A stream that is being written. What was not [finished](Upload::finish) lacks what came last.
#[derive(Debug)]
pub struct Upload {
    archive: Archive,
    /// The part that is being filled, and its number.
    part: Vec<u8>,
    number: u32,
    under_way: VecDeque<JoinHandle<io::Result<()>>>,
}

impl Upload {
    fn new(archive: Archive, number: u32) -> Upload {
        Upload { archive, part: Vec::new(), number, under_way: VecDeque::new() }
    }

    /// Writes the last part, and waits until the store has all of them. Gives their bytes.
    ///
    /// # Errors
    /// The store fails, or somebody else writes a stream at the same address.
    pub fn finish(mut self) -> io::Result<u64> {
        let bytes = u64::from(self.number) * PART_BYTES as u64 + self.part.len() as u64;
        if !self.part.is_empty() {
            self.send()?;
        }
        self.flush()?;
        Ok(bytes)
    }

    fn send(&mut self) -> io::Result<()> {
        while self.under_way.len() >= UNDER_WAY {
            self.wait()?;
        }
        let bytes = std::mem::take(&mut self.part);
        self.under_way.push_back(self.archive.runtime.spawn(put(self.archive.store.clone(), self.number, bytes)));
        self.number += 1;
        Ok(())
    }

    fn wait(&mut self) -> io::Result<()> {
        self.under_way.pop_front().map_or(Ok(()), |oldest| self.archive.runtime.block_on(oldest)?)
    }
}

impl Write for Upload {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(PART_BYTES - self.part.len());
        self.part.extend_from_slice(&bytes[..taken]);
        if self.part.len() == PART_BYTES {
            self.send()?;
        }
        Ok(taken)
    }

    /// Waits until the store has all parts that were full. The last one it gets by [`Upload::finish`] alone: no part is written twice.
    fn flush(&mut self) -> io::Result<()> {
        while !self.under_way.is_empty() {
            self.wait()?;
        }
        Ok(())
    }
}

/// A stream that is being read.
#[derive(Debug)]
pub struct Download {
    archive: Archive,
    parts: u32,
    next: u32,
    under_way: VecDeque<JoinHandle<io::Result<Vec<u8>>>>,
    part: Vec<u8>,
    at: usize,
}

impl Download {
    /// Where the stream lies.
    pub fn archive(&self) -> Archive {
        self.archive.clone()
    }
}

impl Read for Download {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.at == self.part.len() {
            while self.next < self.parts && self.under_way.len() < UNDER_WAY {
                self.under_way.push_back(self.archive.runtime.spawn(get(self.archive.store.clone(), self.next)));
                self.next += 1;
            }
            let Some(oldest) = self.under_way.pop_front() else { return Ok(0) };
            self.part = self.archive.runtime.block_on(oldest)??;
            self.at = 0;
        }
        let taken = buffer.len().min(self.part.len() - self.at);
        buffer[..taken].copy_from_slice(&self.part[self.at..self.at + taken]);
        self.at += taken;
        Ok(taken)
    }
}

/// Makes a part. One of that number may be there already: then it is an earlier attempt of the same, whose answer was lost, or somebody else's.
async fn put(store: Store, number: u32, bytes: Vec<u8>) -> io::Result<()> {
    let is_made = attempts(|| store.put_new(name(number), bytes.clone())).await;
    if is_made.map_err(|failure| error(&failure))? || get(store, number).await? == bytes {
        return Ok(());
    }
    Err(io::Error::other("somebody else writes there at the same time"))
}

async fn get(store: Store, number: u32) -> io::Result<Vec<u8>> {
    match ask(&store, || Ask::Get { name: name(number), range: 0..PART_BYTES as u64 }).await? {
        Answer::Bytes(bytes) => Ok(bytes),
        _ => Err(io::Error::other("the store's answer makes no sense")),
    }
}

async fn ask(store: &Store, ask: impl Fn() -> Ask) -> io::Result<Answer> {
    let answer = attempts(|| async {
        match store.perform(ask()).await {
            Answer::Failed(failure) => Err(failure),
            answer => Ok(answer),
        }
    });
    answer.await.map_err(|failure| error(&failure))
}

/// Asks a store until it answers, a few times.
async fn attempts<T, F: Future<Output = Result<T, Failure>>>(ask: impl Fn() -> F) -> Result<T, Failure> {
    let mut wait = FIRST_WAIT;
    for _ in 1..ATTEMPTS {
        match ask().await {
            Err(Failure::Other(why)) => {
                tracing::debug!(%why, "the store is asked again");
                tokio::time::sleep(wait).await;
                wait *= 2;
            }
            answer => return answer,
        }
    }
    ask().await
}

fn error(failure: &Failure) -> io::Error {
    match failure {
        Failure::Missing => ErrorKind::NotFound.into(),
        failure => io::Error::other(failure.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive(root: &std::path::Path) -> Archive {
        Archive::at(&Address::Directory(root.join("a backup")), None).expect("a directory")
    }

    /// Bytes that differ from part to part.
    fn stream(bytes: usize) -> Vec<u8> {
        (0..bytes).map(|at| (at / 7919) as u8).collect()
    }

    fn read(archive: Archive) -> Vec<u8> {
        let mut found = Vec::new();
        archive.open().expect("there").read_to_end(&mut found).expect("read");
        found
    }

    #[test]
    fn what_is_written_is_read_and_never_written_over() {
        let root = tempfile::tempdir().expect("a directory");
        assert_eq!(archive(root.path()).open().expect_err("nothing").kind(), ErrorKind::NotFound);
        for (number, bytes) in [1, PART_BYTES, PART_BYTES * 5 + 3].into_iter().enumerate() {
            let root = root.path().join(number.to_string());
            let mut upload = archive(&root).create().expect("new");
            upload.write_all(&stream(bytes)).expect("written");
            assert_eq!(upload.finish().expect("finished"), bytes as u64);
            assert!(read(archive(&root)) == stream(bytes));
            assert_eq!(archive(&root).create().expect_err("there already").kind(), ErrorKind::AlreadyExists);
        }
    }

    #[test]
    fn a_stream_goes_on_behind_what_is_sound() {
        let root = tempfile::tempdir().expect("a directory");
        let bytes = stream(PART_BYTES * 3 + 5);
        for sound in [0, 1, PART_BYTES - 1, PART_BYTES, PART_BYTES + 1, PART_BYTES * 3, PART_BYTES * 3 + 5] {
            let root = root.path().join(sound.to_string());
            let mut upload = archive(&root).create().expect("new");
            // What stands behind is nonsense, and reaches further than the stream will.
            upload.write_all(&bytes[..sound]).expect("written");
            upload.write_all(&stream(PART_BYTES * 4)).expect("written");
            upload.finish().expect("finished");
            let mut upload = archive(&root).extend(sound as u64).expect("goes on");
            upload.write_all(&bytes[sound..]).expect("written");
            upload.finish().expect("finished");
            assert!(read(archive(&root)) == bytes, "sound up to {sound}");
        }
    }

    #[test]
    fn a_part_that_is_missing_ends_the_stream() {
        let root = tempfile::tempdir().expect("a directory");
        let mut upload = archive(root.path()).create().expect("new");
        upload.write_all(&stream(PART_BYTES * 3)).expect("written");
        upload.finish().expect("finished");
        std::fs::remove_file(root.path().join("a backup").join(name(1))).expect("removed");
        assert_eq!(read(archive(root.path())).len(), PART_BYTES);
        // Nothing of what stands behind the gap is left.
        let mut upload = archive(root.path()).extend(PART_BYTES as u64).expect("goes on");
        upload.write_all(&[7]).expect("written");
        upload.finish().expect("finished");
        assert_eq!(read(archive(root.path())).len(), PART_BYTES + 1);
    }

    #[test]
    fn two_that_write_the_same_stream_do_not_both_succeed() {
        let root = tempfile::tempdir().expect("a directory");
        let [mut one, mut two] = [1, 2].map(|_| archive(root.path()).create().expect("new"));
        one.write_all(&[1; 9]).expect("written");
        two.write_all(&[2; 9]).expect("written");
        one.finish().expect("the first");
        assert!(two.finish().expect_err("the second").to_string().contains("somebody else"));
    }
}
