//! What makes a workload sensible, whatever the device.

use super::{Access, Load, Phase, Sizes, Weighted, Workload};

/// What is wrong with a workload; the message names the phase and the load.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct Invalid {
    /// Which phase and load.
    pub place: String,
    /// What is wrong, and what was expected.
    pub problem: String,
}

/// Most threads of a phase: more than any protocol asks for, few enough to be held in memory.
const MOST_THREADS: u32 = 65_536;
/// Most requests that a phase keeps outstanding.
const MOST_OUTSTANDING: u64 = 1 << 20;
/// Largest request, bytes.
const LARGEST: u64 = 1 << 30;

impl Workload {
    /// Checks everything that does not depend on the device.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn validate(&self) -> Result<(), Invalid> {
        let fail = |place: &str, problem: String| Err(Invalid { place: place.into(), problem });
        if self.name.trim().is_empty() {
            return fail("workload", "it has no name".into());
        }
        if self.phases.is_empty() {
            return fail(&format!("workload '{}'", self.name), "it has no [[phase]]".into());
        }
        for (at, phase) in self.phases.iter().enumerate() {
            let place = match phase.name.trim() {
                "" => return fail(&format!("phase {}", at + 1), "it has no name".into()),
                name => format!("phase '{name}'"),
            };
            if let Err(problem) = phase.check() {
                return fail(&place, problem);
            }
            for (at, load) in phase.loads.iter().enumerate() {
                if let Err(problem) = load.check() {
                    return fail(&format!("{place}, {}", load.called(at)), problem);
                }
            }
        }
        Ok(())
    }
}

impl Phase {
    fn check(&self) -> Result<(), String> {
        let stop = &self.stop;
        if let Some(times) = stop.capacities
            && !(times > 0.0 && times <= 10_000.0)
        {
            return Err(format!("stop.capacities = {times}; expected more than 0 and at most 10000"));
        }
        if stop.bytes.is_some_and(|bytes| bytes.0 == 0) {
            return Err("stop.bytes = 0 would end it before it began".into());
        }
        if stop.duration.is_some_and(|time| time.nanos() == 0) {
            return Err("stop.duration = 0 would end it before it began".into());
        }
        if self.loads.is_empty() {
            return match stop.duration {
                Some(_) if stop.bytes.is_none() && stop.capacities.is_none() => Ok(()),
                Some(_) => Err("it has no load, so it moves no bytes; only stop.duration makes sense".into()),
                None => Err("it has no load, so it is idle and needs stop.duration".into()),
            };
        }
        if stop.is_none() && self.loads.iter().any(|load| load.thread_bytes.is_none() && load.trace.is_none()) {
            return Err(
                "nothing ends it; give stop.duration, stop.bytes or stop.capacities, or thread_bytes in every load"
                    .into(),
            );
        }
        let threads: u64 = self.loads.iter().map(|load| u64::from(load.threads)).sum();
        if threads > u64::from(MOST_THREADS) {
            return Err(format!("{threads} threads; expected at most {MOST_THREADS}"));
        }
        let outstanding: u64 = self.loads.iter().map(|load| u64::from(load.threads) * u64::from(load.depth())).sum();
        if outstanding > MOST_OUTSTANDING {
            return Err(format!("{outstanding} requests outstanding; expected at most {MOST_OUTSTANDING}"));
        }
        Ok(())
    }
}

impl Load {
    fn check(&self) -> Result<(), String> {
        self.check_trace()?;
        if self.trace.is_some() {
            return Ok(());
        }
        percent("read_percent", self.read_percent)?;
        percent("trim_percent", self.trim_percent)?;
        if self.write_percent() < -1e-9 {
            return Err(format!(
                "read_percent {} and trim_percent {} are more than 100 together",
                self.read_percent, self.trim_percent
            ));
        }
        sizes("size", &self.size)?;
        if let Some(list) = &self.write_size {
            sizes("write_size", list)?;
        }
        self.access.check()?;
        self.check_shuffled()?;
        self.check_object()?;
        if self.align.is_some_and(|align| align.0 == 0) {
            return Err("align = 0; expected a number of bytes".into());
        }
        if self.region.size.is_some_and(|size| size.of(u64::MAX) == 0) {
            return Err("region.size = 0; expected some of the device".into());
        }
        for (name, value) in [("threads", self.threads), ("depth", self.depth())] {
            if value == 0 {
                return Err(format!("{name} = 0; expected 1 or more"));
            }
        }
        if let Some(rate) = &self.rate
            && !(rate.per_second > 0.0 && rate.per_second <= 1e9)
        {
            return Err(format!("rate.per_second = {}; expected more than 0 and at most 10^9", rate.per_second));
        }
        if self.thread_bytes.is_some_and(|extent| extent.of(u64::MAX) == 0) {
            return Err("thread_bytes = 0 would end it before it began".into());
        }
        Ok(())
    }
}

impl Load {
    fn check_shuffled(&self) -> Result<(), String> {
        let (reads, writes) = self.sizes();
        let mut sizes = reads.iter().chain(&writes).map(|entry| entry.size);
        let first = sizes.next();
        if self.access == Access::Shuffled && sizes.any(|size| Some(size) != first) {
            return Err("access = \"shuffled\" takes requests of one size: only then is each place one of them".into());
        }
        Ok(())
    }

    fn check_object(&self) -> Result<(), String> {
        let Some(object) = self.object else { return Ok(()) };
        if object.0 == 0 {
            return Err("object = 0; expected how many bytes an object has".into());
        }
        if matches!(self.access, Access::Sequential | Access::Mixed(_)) {
            return Err(
                "object needs an access that chooses places, such as \"random\"; a sequential load goes from object to object as it is"
                    .into(),
            );
        }
        if ![self.read_percent, self.trim_percent, self.write_percent()].contains(&100.0) {
            return Err("object: whole objects are read, written or trimmed; give one load for each of these".into());
        }
        if self.align.is_some() {
            return Err("object: objects begin at multiples of their size; leave align out".into());
        }
        Ok(())
    }
}

impl Access {
    fn check(&self) -> Result<(), String> {
        match self {
            Access::Random | Access::Shuffled | Access::Sequential => Ok(()),
            Access::Mixed(share) => percent("access.mixed", *share),
            Access::Zipf(theta) if *theta > 0.0 && *theta <= 10.0 => Ok(()),
            Access::Zipf(theta) => Err(format!("access.zipf = {theta}; expected more than 0 and at most 10")),
            Access::HotCold(hot) => {
                percent("access.hot-cold.accesses", hot.accesses)?;
                if hot.space > 0.0 && hot.space < 100.0 {
                    return Ok(());
                }
                Err(format!("access.hot-cold.space = {}; expected more than 0 and less than 100", hot.space))
            }
            Access::Zones(zones) => {
                if zones.is_empty() {
                    return Err("access.zones is empty".into());
                }
                for zone in zones {
                    percent("access.zones: accesses", zone.accesses)?;
                    percent("access.zones: space", zone.space)?;
                    if zone.accesses > 0.0 && zone.space <= 0.0 {
                        return Err(format!("access.zones: {} % of accesses go to no space", zone.accesses));
                    }
                }
                let accesses: f64 = zones.iter().map(|zone| zone.accesses).sum();
                let space: f64 = zones.iter().map(|zone| zone.space).sum();
                if (accesses - 100.0).abs() > 0.01 || space > 100.01 {
                    return Err(format!(
                        "access.zones: accesses are {accesses} % and space is {space} % together; expected 100 and at most 100"
                    ));
                }
                Ok(())
            }
        }
    }
}

fn percent(name: &str, value: f64) -> Result<(), String> {
    if (0.0..=100.0).contains(&value) { Ok(()) } else { Err(format!("{name} = {value}; expected 0 to 100")) }
}

fn sizes(name: &str, sizes: &Sizes) -> Result<(), String> {
    let list = sizes.list();
    if list.is_empty() {
        return Err(format!("{name} is missing, or is an empty list"));
    }
    for Weighted { size, weight } in &list {
        if size.0 == 0 || size.0 > LARGEST {
            return Err(format!(
                "{name}: a request of {}; expected 1 byte to {}",
                size::exact(size.0),
                size::exact(LARGEST)
            ));
        }
        if !(weight.is_finite() && *weight >= 0.0) {
            return Err(format!("{name}: weight {weight} of {}; expected 0 or more", size::exact(size.0)));
        }
    }
    if list.iter().map(|entry| entry.weight).sum::<f64>() <= 0.0 {
        return Err(format!("{name}: every weight is 0"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::from_toml;

    /// A sound workload with lines put behind its load's others, or in place of those that they name.
    fn with(line: &str) -> String {
        let base = "name = \"w\"\n[[phase]]\nname = \"p\"\nstop = { duration = \"1s\" }\n[[phase.load]]\n";
        let key = |line: &str| line.split('=').next().unwrap_or_default().trim().to_owned();
        let keys: Vec<String> = line.lines().map(key).collect();
        let rest: String = ["read_percent = 50", "size = \"4KiB\""]
            .iter()
            .filter(|other| !keys.contains(&key(other)))
            .map(|other| format!("{other}\n"))
            .collect();
        format!("{base}{rest}{line}\n")
    }

    fn error(text: &str) -> String {
        from_toml(text).expect_err(text).to_string()
    }

    #[test]
    fn what_is_wrong_is_named() {
        from_toml(&with("threads = 4")).expect("sound");
        for (line, expected) in [
            ("read_percent = 101", "phase 'p', load 1: read_percent = 101; expected 0 to 100"),
            ("trim_percent = 60", "are more than 100 together"),
            ("size = 0", "size: a request of 0; expected 1 byte"),
            ("size = []", "size is missing, or is an empty list"),
            ("size = [{ size = 512, weight = 0 }]", "every weight is 0"),
            ("write_size = [{ size = 512, weight = -1 }]", "write_size: weight -1 of 512"),
            ("access = { zipf = 0.0 }", "access.zipf = 0"),
            ("access = { mixed = 120.0 }", "access.mixed = 120"),
            ("access = { hot-cold = { accesses = 90, space = 100 } }", "access.hot-cold.space = 100"),
            ("access = { zones = [{ accesses = 50, space = 10 }] }", "accesses are 50 %"),
            ("access = { zones = [{ accesses = 100, space = 0 }] }", "go to no space"),
            ("threads = 0", "threads = 0; expected 1 or more"),
            ("depth = 100000000", "100000000 requests outstanding"),
            ("rate = { per_second = 0.0 }", "rate.per_second = 0"),
            ("align = 0", "align = 0"),
            ("region = { size = \"0%\" }", "region.size = 0"),
            ("thread_bytes = 0", "thread_bytes = 0"),
            (
                "access = \"shuffled\"\nsize = [{ size = 512, weight = 1 }, { size = 4096, weight = 1 }]",
                "shuffled\" takes requests of one size",
            ),
            ("object = 0", "object = 0"),
            (
                "object = \"1MiB\"\naccess = \"sequential\"\nread_percent = 0",
                "object needs an access that chooses places",
            ),
            ("object = \"1MiB\"", "give one load for each of these"),
            ("object = \"1MiB\"\nalign = 4096\nread_percent = 0", "leave align out"),
        ] {
            let message = error(&with(line));
            assert!(message.contains(expected), "{line}: {message}");
        }
    }

    #[test]
    fn phases_end() {
        let phase = |stop: &str, load: &str| format!("name = \"w\"\n[[phase]]\nname = \"p\"\n{stop}\n{load}\n");
        let load = "[[phase.load]]\nread_percent = 0\nsize = 4096\n";
        assert!(error(&phase("", load)).contains("phase 'p': nothing ends it"));
        assert!(error(&phase("", "")).contains("needs stop.duration"));
        assert!(error(&phase("stop = { duration = 0 }", load)).contains("before it began"));
        assert!(error(&phase("stop = { capacities = -1.0 }", load)).contains("stop.capacities = -1"));
        assert!(error(&phase("stop = { bytes = \"1GiB\" }", "")).contains("needs stop.duration"));
        from_toml(&phase("stop = { duration = 5 }", "")).expect("an idle phase");
        from_toml(&phase("", &format!("{load}thread_bytes = \"1MiB\""))).expect("threads that stop by themselves");
    }

    #[test]
    fn names_are_needed() {
        assert!(error("name = \"\"\nphase = []").contains("it has no name"));
        assert!(error("name = \"w\"\nphase = []").contains("it has no [[phase]]"));
    }
}
