//! What is written: endless streams of writes and trims over a device of so many sectors.

use ftl::Request;
use rand_distr::{Distribution, Zipf};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use super::files::{Files, below};

/// A kind of traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Workload {
    /// All sectors alike.
    Uniform,
    /// 80 % of the writes go to 20 % of the sectors.
    HotCold,
    /// Zipf with theta 1.0.
    Zipf,
    /// 90 % of the writes go to 10 % of the sectors.
    HotCold90,
    /// 95 % of the writes go to 5 % of the sectors.
    HotCold95,
    /// Zipf with theta 0.6.
    Zipf06,
    /// Zipf with theta 0.8.
    Zipf08,
    /// Zipf with theta 0.9.
    Zipf09,
    /// Zipf with theta 1.2.
    Zipf12,
    /// 80/20; the hot fifth is another one after every two drive writes.
    Jumping,
    /// 80/20; the hot fifth slides over the device once in eight drive writes.
    Sliding,
    /// The device is rewritten from end to end, again and again; a random tenth of the sectors is left out each time.
    Holes,
    /// Three tenants: half of the space at random with a fifth of the writes, a quarter by Zipf and a quarter as a ring with two fifths each.
    Tenants,
    /// A database: a log in a small ring, pages of two sectors by Zipf, and a checkpoint that writes a sixteenth of all pages in order.
    Database,
    /// A file system: a journal, metadata, files that are made and deleted; the space of deleted ones is used again.
    Files,
    /// The same; deleted files are trimmed.
    FilesTrimmed,
}

impl Workload {
    /// Every workload, those with published figures first.
    pub const ALL: [Workload; 16] = [
        Workload::HotCold,
        Workload::Zipf,
        Workload::Uniform,
        Workload::HotCold90,
        Workload::HotCold95,
        Workload::Zipf06,
        Workload::Zipf08,
        Workload::Zipf09,
        Workload::Zipf12,
        Workload::Jumping,
        Workload::Sliding,
        Workload::Holes,
        Workload::Tenants,
        Workload::Database,
        Workload::Files,
        Workload::FilesTrimmed,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Workload::Uniform => "uniform",
            Workload::HotCold => "hot-cold-80-20",
            Workload::Zipf => "zipf-1.0",
            Workload::HotCold90 => "hot-cold-90-10",
            Workload::HotCold95 => "hot-cold-95-5",
            Workload::Zipf06 => "zipf-0.6",
            Workload::Zipf08 => "zipf-0.8",
            Workload::Zipf09 => "zipf-0.9",
            Workload::Zipf12 => "zipf-1.2",
            Workload::Jumping => "jumping-hot-spot",
            Workload::Sliding => "sliding-hot-spot",
            Workload::Holes => "sequential-with-holes",
            Workload::Tenants => "mixed-tenants",
            Workload::Database => "database",
            Workload::Files => "file-system",
            Workload::FilesTrimmed => "file-system-trimmed",
        }
    }

    /// The workload of that name.
    pub fn from_name(name: &str) -> Option<Workload> {
        Workload::ALL.into_iter().find(|workload| workload.name() == name)
    }

    /// Its requests over so many sectors.
    pub fn source(self, sectors: u64, seed: u64) -> Source {
        let ranks = match self {
            Workload::Zipf => Ranks::new(sectors, 1.0),
            Workload::Zipf06 => Ranks::new(sectors, 0.6),
            Workload::Zipf08 => Ranks::new(sectors, 0.8),
            Workload::Zipf09 => Ranks::new(sectors, 0.9),
            Workload::Zipf12 => Ranks::new(sectors, 1.2),
            Workload::Tenants => Ranks::new(sectors / 4, 1.0),
            Workload::Database => Ranks::new(sectors * 15 / 16 / 2, 0.9),
            _ => Ranks::new(1, 1.0),
        };
        let files = matches!(self, Workload::Files | Workload::FilesTrimmed)
            .then(|| Files::new(sectors, self == Workload::FilesTrimmed));
        Source {
            workload: self,
            sectors,
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            ranks,
            files,
            written: 0,
            at: 0,
            checkpoint: None,
        }
    }
}

/// Sectors by rank, scattered over a range.
struct Ranks {
    zipf: Option<Zipf<f64>>,
    count: u64,
}

impl Ranks {
    fn new(count: u64, theta: f64) -> Ranks {
        Ranks { zipf: Zipf::new(count as f64, theta).ok(), count }
    }

    fn draw(&self, random: &mut Xoshiro256PlusPlus) -> u64 {
        let rank = self.zipf.as_ref().map_or(0, |zipf| zipf.sample(random) as u64 - 1);
        // A prime that divides no count of sectors in use here.
        (u128::from(rank) * 2_654_435_761 % u128::from(self.count)) as u64
    }
}

/// The requests of a workload, without end.
pub struct Source {
    workload: Workload,
    sectors: u64,
    random: Xoshiro256PlusPlus,
    ranks: Ranks,
    files: Option<Files>,
    /// Sectors written.
    written: u64,
    /// Where a sequence stands.
    at: u64,
    /// Pages left of the database's checkpoint, and the next one.
    checkpoint: Option<(u64, u64)>,
}

impl Source {
    /// The next request.
    #[allow(clippy::should_implement_trait, reason = "it has no end, so that there is no Option to give")]
    pub fn next(&mut self) -> Request<'static> {
        let n = self.sectors;
        let random = &mut self.random;
        let write = |lba: u64, count: u32| Request::Write { lba, count, fua: false };
        let request = match self.workload {
            Workload::Uniform => write(below(random, n), 1),
            Workload::HotCold => write(hot_cold(random, n, 80, n / 5, 0), 1),
            Workload::HotCold90 => write(hot_cold(random, n, 90, n / 10, 0), 1),
            Workload::HotCold95 => write(hot_cold(random, n, 95, n / 20, 0), 1),
            Workload::Jumping => write(hot_cold(random, n, 80, n / 5, self.written / (2 * n) * (n * 2 / 5)), 1),
            Workload::Sliding => write(hot_cold(random, n, 80, n / 5, self.written / 8), 1),
            Workload::Zipf | Workload::Zipf06 | Workload::Zipf08 | Workload::Zipf09 | Workload::Zipf12 => {
                write(self.ranks.draw(random), 1)
            }
            Workload::Holes => {
                while below(random, 10) == 0 {
                    self.at += 1;
                }
                self.at += 1;
                write((self.at - 1) % n, 1)
            }
            Workload::Tenants => match below(random, 5) {
                0 => write(below(random, n / 2), 1),
                1 | 2 => write(n / 2 + self.ranks.draw(random), 1),
                _ => {
                    self.at += 1;
                    write(n * 3 / 4 + (self.at - 1) % (n / 4), 1)
                }
            },
            Workload::Database => self.database(),
            Workload::Files | Workload::FilesTrimmed => match &mut self.files {
                Some(files) => files.next(random),
                None => write(below(random, n), 1),
            },
        };
        if let Request::Write { count, .. } = request {
            self.written += u64::from(count);
        }
        request
    }

    fn database(&mut self) -> Request<'static> {
        let log = self.sectors / 16;
        let pages = self.ranks.count;
        let page = |page: u64| Request::Write { lba: log + page * 2, count: 2, fua: false };
        if let Some((left, next)) = self.checkpoint {
            self.checkpoint = (left > 1).then_some((left - 1, (next + 1) % pages));
            return page(next);
        }
        if below(&mut self.random, pages * 2) == 0 {
            self.checkpoint = Some((pages / 16, below(&mut self.random, pages)));
        }
        if below(&mut self.random, 2) == 0 {
            let count = 1 + below(&mut self.random, 4) as u32;
            let lba = if self.at + u64::from(count) > log { 0 } else { self.at };
            self.at = lba + u64::from(count);
            return Request::Write { lba, count, fua: false };
        }
        page(self.ranks.draw(&mut self.random))
    }
}

/// So many per cent of the writes to `hot` sectors from `begin` on, around the end.
fn hot_cold(random: &mut Xoshiro256PlusPlus, sectors: u64, per_cent: u64, hot: u64, begin: u64) -> u64 {
    let at = match below(random, 100) < per_cent {
        true => below(random, hot),
        false => hot + below(random, sectors - hot),
    };
    (begin + at) % sectors
}
