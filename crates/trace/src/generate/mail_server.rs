//! A mail server's traffic: a recipe for want of the trace itself, which was never published.
//!
//! Of StorageReview's mail-server trace two traits are known: 95 % of its requests read, and most are small. Everything else here is an
//! assumption, and `docs/traces.md` says so trait by trait.

use rand_distr::{Distribution, Exp1, Zipf};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use crate::record::{Op, Record};

/// Requests that read, of 1000. Source: StorageReview's description of its trace, 2012.
const READS: u64 = 950;
/// Sizes and their share, per cent: most are small, as StorageReview says; the shares themselves are assumed. Mean about 8 KiB.
const SIZES: [(u64, u64); 7] = [(512, 4), (1024, 4), (4096, 58), (8192, 20), (16_384, 8), (32_768, 4), (65_536, 2)];
/// Bytes of a mailbox's place on disk. Assumed.
const MAILBOX: u64 = 1 << 20;
/// Popularity of mailboxes: the k-th gets a share in proportion to 1 / k^0.9. Assumed; measured stores of mail and web pages lie around it.
const THETA: f64 = 0.9;
/// Reads that go on where the one before in that mailbox ended, of 1000. Assumed.
const READS_ON: u64 = 200;
/// Writes that go to the log and the queue of incoming mail, of 1000; the others go to mailboxes. Assumed.
const LOG_WRITES: u64 = 600;
/// Share of the space that log and queue take, written round and round: one part in so many. Assumed.
const LOG_PART: u64 = 64;
/// In a rush, requests come so many times as fast as on average, and the lull in between makes up for it. Assumed.
const RUSH: f64 = 4.0;
/// Share of time that is rush.
const RUSH_SHARE: f64 = 0.15;
/// Mean length of a rush, seconds. Assumed.
const RUSH_SECONDS: f64 = 0.05;

/// The recipe.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MailServer {
    /// Bytes of the volume: 64 MiB or more.
    pub bytes: u64,
    /// Requests a second on average.
    pub per_second: f64,
    /// Where every choice comes from.
    pub seed: u64,
}

impl Default for MailServer {
    fn default() -> MailServer {
        MailServer { bytes: 32 << 30, per_second: 1000.0, seed: 1 }
    }
}

/// The requests of a mail server, without end.
#[derive(Debug)]
pub struct Requests {
    random: Xoshiro256PlusPlus,
    zipf: Option<Zipf<f64>>,
    mailboxes: u64,
    step: u64,
    /// First byte of the mailboxes; before them lie log and queue.
    first: u64,
    log_at: u64,
    /// Where the last read ended.
    read_end: u64,
    gap_ns: f64,
    now_ns: f64,
    rush: bool,
    /// When this rush or lull ends.
    until_ns: f64,
}

impl MailServer {
    /// Its requests: the same for the same seed, everywhere.
    ///
    /// # Errors
    /// The volume is too small, or the rate makes no sense.
    pub fn requests(self) -> Result<Requests, String> {
        if !(64 << 20..=1 << 50).contains(&self.bytes) {
            return Err(format!("a volume of {}; expected 64 MiB to 1 PiB", size::show(self.bytes)));
        }
        if !(0.001..=1e9).contains(&self.per_second) {
            return Err(format!("{} requests a second; expected 0.001 to 10^9", self.per_second));
        }
        let first = (self.bytes / LOG_PART).next_multiple_of(MAILBOX);
        let mailboxes = (self.bytes - first) / MAILBOX;
        // Near the golden section and without a divisor in common with their number: popular mailboxes are scattered, and each has its place.
        let mut step = ((mailboxes as f64 * 0.618_033_988_75) as u64).max(1);
        while divisor(step, mailboxes) != 1 {
            step += 1;
        }
        Ok(Requests {
            random: Xoshiro256PlusPlus::seed_from_u64(self.seed),
            // Fails only for a number below 1 or an exponent below 0.
            zipf: Zipf::new(mailboxes as f64, THETA).ok(),
            mailboxes,
            step,
            first,
            log_at: 0,
            read_end: first,
            gap_ns: 1e9 / self.per_second,
            now_ns: 0.0,
            rush: false,
            until_ns: 0.0,
        })
    }
}

fn divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

impl Requests {
    fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.random.next_u64()) * u128::from(limit)) >> 64) as u64
    }

    fn exponential(&mut self) -> f64 {
        Exp1.sample(&mut self.random)
    }

    fn size(&mut self) -> u64 {
        let mut left = self.below(100);
        for (bytes, share) in SIZES {
            if left < share {
                return bytes;
            }
            left -= share;
        }
        4096
    }

    /// A place in a mailbox, by popularity.
    fn mailbox(&mut self, bytes: u64) -> u64 {
        let rank = match &self.zipf {
            Some(zipf) => (zipf.sample(&mut self.random) as u64).clamp(1, self.mailboxes) - 1,
            None => 0,
        };
        let mailbox = (u128::from(rank) * u128::from(self.step) % u128::from(self.mailboxes)) as u64;
        // Small requests lie on sectors, others on blocks of 4 KiB.
        let align = bytes.min(4096);
        let within = self.below((MAILBOX - bytes) / align + 1) * align;
        self.first + mailbox * MAILBOX + within
    }

    fn advance(&mut self) {
        let lull = (1.0 - RUSH * RUSH_SHARE) / (1.0 - RUSH_SHARE);
        loop {
            let times = if self.rush { RUSH } else { lull };
            let next = self.now_ns + self.exponential() * self.gap_ns / times;
            if next < self.until_ns {
                self.now_ns = next;
                return;
            }
            // Arrivals are without memory: from the change on, count anew.
            self.now_ns = self.until_ns;
            self.rush = !self.rush;
            let mean = if self.rush { RUSH_SECONDS } else { RUSH_SECONDS * (1.0 - RUSH_SHARE) / RUSH_SHARE };
            self.until_ns += self.exponential() * mean * 1e9;
        }
    }
}

impl Iterator for Requests {
    type Item = Record;

    fn next(&mut self) -> Option<Record> {
        self.advance();
        let bytes = self.size();
        let (op, offset) = if self.below(1000) < READS {
            let on = self.below(1000) < READS_ON;
            let room = self.read_end.is_multiple_of(bytes.min(4096))
                && self.read_end + bytes <= self.first + self.mailboxes * MAILBOX;
            let offset = if on && room { self.read_end } else { self.mailbox(bytes) };
            self.read_end = offset + bytes;
            (Op::Read, offset)
        } else if self.below(1000) < LOG_WRITES {
            let align = bytes.min(4096);
            let at = self.log_at.next_multiple_of(align);
            let at = if at + bytes > self.first { 0 } else { at };
            self.log_at = at + bytes;
            (Op::Write, at)
        } else {
            (Op::Write, self.mailbox(bytes))
        };
        Some(Record { time_ns: self.now_ns as u64, offset, bytes, op, ..Record::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::info::{Characteriser, Share, Source};

    #[test]
    fn it_has_the_traits_that_were_published_and_those_that_are_assumed() {
        let mut characteriser = Characteriser::default();
        let server = MailServer { bytes: 1 << 30, ..MailServer::default() };
        for record in server.requests().expect("sound").take(200_000) {
            record.check().expect("a request");
            assert!(record.end() <= server.bytes && record.offset.is_multiple_of(512));
            characteriser.add(&record);
        }
        let info = characteriser.finish(Source::default());
        assert!((info.requests.read.percent - 95.0).abs() < 0.2, "{}", info.requests.read.percent);
        let small: u64 = info.sizes.iter().filter(|size| size.bytes <= 8192).map(|size| size.reads + size.writes).sum();
        assert!((small as f64 / 200_000.0 - 0.86).abs() < 0.01, "{small}");
        assert!((info.duration_seconds / 200.0 - 1.0).abs() < 0.15, "{}", info.duration_seconds);
        let hot = Share::of(&info.hot_spots.accesses, 20.0).expect("blocks");
        assert!(hot > 50.0, "{hot}");
        let second = info.bursts.iter().find(|window| window.seconds == 1.0).expect("seconds");
        assert!(second.dispersion > 5.0, "{}", second.dispersion);
        assert_eq!(info.out_of_order, 0);
    }

    #[test]
    fn a_seed_gives_the_same_again() {
        let take = |seed| {
            MailServer { seed, ..MailServer::default() }.requests().expect("sound").take(1000).collect::<Vec<_>>()
        };
        assert_eq!(take(7), take(7));
        assert_ne!(take(7), take(8));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for server in [
            MailServer { bytes: 1 << 20, ..MailServer::default() },
            MailServer { per_second: 0.0, ..MailServer::default() },
            MailServer { per_second: f64::NAN, ..MailServer::default() },
        ] {
            assert!(server.requests().expect_err("no sense").contains("expected"));
        }
    }
}
