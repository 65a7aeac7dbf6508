//! Iometer's configuration files (`.icf`) as workloads: a phase for each access specification, one behind the other.
//!
//! Read are the access specifications, the run time, the ramp, and how many workers there are with how many outstanding. Lines that begin
//! with `'` are Iometer's own headings, and say what the lines below them hold. What a workload cannot say is refused by name: delays and
//! bursts, replies, and alignments that differ within a specification.

use std::time::Duration;

use super::{Access, Bytes, Invalid, Load, Phase, Sizes, Stop, Time, Weighted, Workload};

/// One line of an access specification.
struct Entry {
    size: u64,
    /// Per cent of requests.
    share: f64,
    reads: f64,
    random: f64,
    align: u64,
}

/// A workload from the text of such a file.
///
/// # Errors
/// A line is not what its heading says, or a workload cannot say it.
pub fn workload(text: &str) -> Result<Workload, Invalid> {
    let (mut heading, mut workers, mut outstanding) = (String::new(), 0u32, None);
    let (mut seconds, mut ramp) = (60, 0);
    let mut specifications: Vec<(String, Vec<Entry>)> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let at = |problem: String| Invalid { place: format!("line {number}"), problem };
        let line = line.trim();
        if let Some(said) = line.strip_prefix('\'') {
            heading = said.trim().to_lowercase();
            continue;
        }
        let wrong = || at(format!("'{line}' is no '{heading}'"));
        match heading.as_str() {
            _ if line.is_empty() => {}
            "access specification name,default assignment" => {
                let name = line.rsplit_once(',').map_or(line, |(name, _)| name);
                specifications.push((name.into(), Vec::new()));
            }
            "size,% of size,% reads,% random,delay,burst,align,reply" => {
                let numbers: Vec<u64> = line.split(',').map_while(|word| word.trim().parse().ok()).collect();
                let [size, share, reads, random, delay, burst, align, reply] = numbers[..] else { return Err(wrong()) };
                if delay > 0 || burst > 1 || reply > 0 {
                    return Err(at("delays, bursts and replies cannot be made; make them 0, 1 and 0".into()));
                }
                let (_, entries) = specifications.last_mut().ok_or_else(wrong)?;
                let [share, reads, random] = [share, reads, random].map(|percent| percent as f64);
                entries.push(Entry { size, share, reads, random, align });
            }
            heading if heading.split_whitespace().eq(["hours", "minutes", "seconds"]) => {
                let parts: Vec<u64> = line.split_whitespace().map_while(|word| word.parse().ok()).collect();
                let [hours, minutes, rest] = parts[..] else { return Err(wrong()) };
                seconds = hours.saturating_mul(3600).saturating_add(minutes.saturating_mul(60)).saturating_add(rest);
            }
            "ramp up time (s)" => ramp = line.parse().map_err(|_| wrong())?,
            "worker" => workers = workers.saturating_add(1),
            heading if heading.starts_with("number of outstanding ios") => {
                let first = line.split(',').next().and_then(|word| word.trim().parse::<u32>().ok());
                outstanding = Some(first.ok_or_else(wrong)?);
            }
            _ => {}
        }
    }
    specifications.retain(|(_, entries)| !entries.is_empty());
    let whole = |problem: &str| Invalid { place: "the file".into(), problem: problem.into() };
    if specifications.is_empty() {
        return Err(whole("it has no access specification: is it an .icf file of Iometer?"));
    }
    let phase = |(name, entries): (String, Vec<Entry>)| {
        let load = load(&entries, workers.max(1), outstanding)
            .map_err(|problem| Invalid { place: format!("access specification '{name}'"), problem })?;
        let stop = Stop { duration: Some(Time(Duration::from_secs(seconds))), ..Stop::default() };
        Ok(Phase { name, measured: true, ramp: Time(Duration::from_secs(ramp)), stop, loads: vec![load] })
    };
    let workload = Workload {
        name: "iometer".into(),
        description: "From a configuration of Iometer".into(),
        seed: 1,
        phases: specifications.into_iter().map(phase).collect::<Result<_, Invalid>>()?,
    };
    workload.validate()?;
    Ok(workload)
}

fn load(entries: &[Entry], threads: u32, depth: Option<u32>) -> Result<Load, String> {
    let all: f64 = entries.iter().map(|entry| entry.share).sum();
    if all != 100.0 {
        return Err(format!("its sizes add up to {all} %"));
    }
    if entries.iter().any(|entry| entry.reads > 100.0 || entry.random > 100.0) {
        return Err("it has more than 100 % of reads or random requests".into());
    }
    let align = entries[0].align;
    if entries.iter().any(|entry| entry.align != align) {
        return Err("its lines are aligned differently".into());
    }
    let sum = |of: &dyn Fn(&Entry) -> f64| entries.iter().map(|entry| entry.share * of(entry)).sum::<f64>() / 100.0;
    let sizes = |of: &dyn Fn(&Entry) -> f64| {
        let weighted = entries.iter().map(|it| Weighted { size: Bytes(it.size), weight: it.share * of(it) / 100.0 });
        match &weighted.filter(|it| it.weight > 0.0).collect::<Vec<_>>()[..] {
            [one] => Sizes::One(one.size),
            several => Sizes::Mix(several.to_vec()),
        }
    };
    let (reads, random) = (sum(&|entry| entry.reads), sum(&|entry| entry.random));
    let (of_reads, of_writes) = (sizes(&|entry| entry.reads), sizes(&|entry| 100.0 - entry.reads));
    let size = if reads > 0.0 { of_reads } else { of_writes.clone() };
    Ok(Load {
        write_size: (reads > 0.0 && reads < 100.0 && of_writes != size).then_some(of_writes),
        access: match random {
            0.0 => Access::Sequential,
            100.0 => Access::Random,
            percent => Access::Mixed(percent),
        },
        align: (align > 0).then_some(Bytes(align)),
        threads,
        depth,
        ..Load::new(reads, size)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "Version 1.1.0 \n'TEST SETUP ====\n'Run Time\n'\thours      minutes    seconds\n\t0          2          5\n\
        'Ramp Up Time (s)\n\t10\n'END test setup\n'ACCESS SPECIFICATIONS ====\n'Access specification name,default assignment\n\
        \tFile, and more,NONE\n'size,% of size,% reads,% random,delay,burst,align,reply\n\t512,10,80,100,0,1,0,0\n\
        \t4096,90,80,100,0,1,0,0\n'Access specification name,default assignment\n\tStream,NONE\n\
        'size,% of size,% reads,% random,delay,burst,align,reply\n\t65536,50,100,0,0,1,4096,0\n\t8192,50,0,50,0,1,4096,0\n\
        'End access specifications\n'MANAGER LIST ====\n'Worker\n\tWorker 1\n'Worker type\n\tDISK\n'Worker\n\tWorker 2\n\
        'Number of outstanding IOs,test connection rate\n\t16,DISABLED\n'End worker\n";

    #[test]
    fn specifications_become_phases() {
        let workload = workload(FILE).expect("a configuration");
        let [file, stream] = &workload.phases[..] else { panic!("two phases") };
        assert_eq!((file.name.as_str(), file.stop.duration), ("File, and more", Some(Time(Duration::from_secs(125)))));
        assert_eq!(file.ramp, Time(Duration::from_secs(10)));
        let load = &file.loads[0];
        assert_eq!((load.read_percent, &load.access, load.threads, load.depth()), (80.0, &Access::Random, 2, 16));
        assert_eq!(load.size.list().len(), 2);
        let load = &stream.loads[0];
        assert_eq!((load.read_percent, &load.access), (50.0, &Access::Mixed(25.0)));
        assert_eq!((&load.size, &load.write_size), (&Sizes::One(Bytes(65_536)), &Some(Sizes::One(Bytes(8_192)))));
        assert_eq!(load.align, Some(Bytes(4_096)));
    }

    #[test]
    fn what_it_cannot_say_is_refused_with_its_line() {
        let refused = |from: &str, to: &str| workload(&FILE.replace(from, to)).expect_err("refused").to_string();
        assert!(refused("512,10,80,100,0,1,0,0", "512,10,80,100,5,1,0,0").starts_with("line 13: delays"));
        assert!(refused("512,10,80,100,0,1,0,0", "512,ten,80").contains("line 13"));
        assert!(refused("512,10,", "512,20,").contains("add up to 110 %"));
        assert!(refused("'size,", "'sizes,").contains("no access specification"));
        assert!(refused("4096,90,80", "4096,90,180").contains("more than 100 %"));
    }
}
