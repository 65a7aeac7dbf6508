//! What the way between a client and a device on this machine takes.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use media::nand::Nanos;

/// Round trips measured.
const ROUNDS: usize = 101;
/// A machine slower than this cannot be made up for, nanoseconds.
const MOST: Nanos = 50_000;
/// No measurement takes longer.
const GIVE_UP: Duration = Duration::from_millis(100);
/// A request as the export gets it: header and 4 KiB.
const REQUEST: usize = 28 + 4096;
/// A reply without data.
const REPLY: usize = 16;

/// The median time from a client's request to its answer beyond the `device` time that the device itself takes: two messages over a
/// socket to and from a thread that sleeps until its answer comes, the longer the harder to wake. 0 where it cannot be measured.
pub(crate) fn path_time(device: Nanos) -> Nanos {
    measure(device).map_or(0, |median| median.saturating_sub(device)).min(MOST)
}

fn measure(device: Nanos) -> std::io::Result<Nanos> {
    let (mut ours, mut theirs) = UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    theirs.set_read_timeout(Some(GIVE_UP))?;
    let client = std::thread::Builder::new().name("path time".into()).spawn(move || {
        let mut times = Vec::with_capacity(ROUNDS);
        for _ in 0..ROUNDS {
            let begin = Instant::now();
            let asked = theirs.write_all(&[0; 28]).and_then(|()| theirs.write_all(&[0; REQUEST - 28]));
            if asked.and_then(|()| theirs.read_exact(&mut [0; REPLY])).is_err() {
                break;
            }
            times.push(begin.elapsed().as_nanos() as Nanos);
        }
        times.sort_unstable();
        times.get(times.len() / 2).copied().unwrap_or(0)
    })?;
    let (begin, mut request, mut got) = (Instant::now(), [0; REQUEST], 0);
    while begin.elapsed() < GIVE_UP {
        match ours.read(&mut request[got..]) {
            Ok(0) => break,
            Ok(count) => got += count,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => continue,
            Err(_) => break,
        }
        if got == REQUEST {
            got = 0;
            let came = Instant::now();
            while (came.elapsed().as_nanos() as Nanos) < device {
                std::hint::spin_loop();
            }
            if ours.write_all(&[0; REPLY]).is_err() {
                break;
            }
        }
    }
    drop(ours);
    Ok(client.join().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_measured_in_bounds() {
        for device in [0, 100_000] {
            let nanos = path_time(device);
            assert!((1..=MOST).contains(&nanos), "{nanos} ns");
        }
    }
}
