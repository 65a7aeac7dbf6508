//! Bringing a device into a state, and fitting a workload to a smaller one.

use trace::playback::Pace;

use super::{Access, Bytes, Extent, Load, Phase, Sizes, Stop, Workload};

/// What a device has been through before the workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Precondition {
    /// Nothing: it is fresh.
    Fresh,
    /// Written once from beginning to end.
    Fill,
    /// Filled, then 4 KiB random writes of twice its capacity.
    Random,
    /// Filled, then twice its capacity of the workload itself; where it only reads, of its mirror that only writes.
    Workload,
}

/// Times the capacity that is written after the fill: enough that uniform random writes are past their first cliff.
const TIMES: f64 = 2.0;

impl Workload {
    /// The same with phases in front that bring `devices` devices, with sectors of so many bytes, into a state.
    pub fn preconditioned(mut self, how: Precondition, devices: u32, sector_bytes: u32) -> Workload {
        let mut phases = Vec::new();
        if how != Precondition::Fresh {
            phases.push(phase("fill", 1.0, vec![writes(128 << 10, Access::Sequential, devices.max(1))]));
        }
        match how {
            Precondition::Fresh | Precondition::Fill => {}
            Precondition::Random => {
                let load =
                    writes(u64::from(sector_bytes.max(4096)), Access::Random, 16_u32.next_multiple_of(devices.max(1)));
                phases.push(phase("precondition", TIMES, vec![load]));
            }
            Precondition::Workload => {
                let first = self.phases.iter().find(|phase| phase.measured && !phase.loads.is_empty());
                let mut loads = first.map(|phase| phase.loads.clone()).unwrap_or_default();
                for load in &mut loads {
                    load.rate = None;
                    load.thread_bytes = None;
                    load.threads = load.threads.next_multiple_of(devices.max(1));
                    if let Some(trace) = &mut load.trace {
                        // Its requests, as fast as they go.
                        trace.pace = Pace::Depth;
                        load.threads = 1;
                        load.depth = Some(16);
                    }
                    if load.read_percent == 100.0 {
                        load.read_percent = 0.0;
                    }
                }
                if !loads.is_empty() {
                    phases.push(phase("precondition", TIMES, loads));
                }
            }
        }
        phases.append(&mut self.phases);
        self.phases = phases;
        self
    }

    /// The same for a device that is so many times smaller: what is given in bytes shrinks with it. Times stay.
    pub fn scaled(mut self, by: f64) -> Workload {
        // Down to 64 KiB, which every sector size and alignment divides, but never to nothing.
        let smaller = |bytes: u64| (((bytes as f64 / by) as u64) >> 16 << 16).max(1 << 16);
        let shrink = |extent: &mut Extent| {
            if let Extent::Bytes(bytes) = extent
                && *bytes > 0
            {
                *bytes = smaller(*bytes);
            }
        };
        for phase in &mut self.phases {
            if let Some(bytes) = &mut phase.stop.bytes {
                *bytes = Bytes(smaller(bytes.0));
            }
            for load in &mut phase.loads {
                shrink(&mut load.region.offset);
                load.region.size.iter_mut().for_each(shrink);
                load.thread_bytes.iter_mut().for_each(shrink);
                load.object.iter_mut().for_each(|object| *object = Bytes(smaller(object.0)));
            }
        }
        self
    }
}

/// A phase that is not measured and ends when so many capacities of its region were asked for.
pub(crate) fn phase(name: &str, capacities: f64, loads: Vec<Load>) -> Phase {
    let stop = Stop { capacities: Some(capacities), ..Stop::default() };
    Phase { name: name.into(), measured: false, ramp: Default::default(), stop, loads }
}

/// Writes of one size all over the device, 16 by each thread at once.
pub(crate) fn writes(bytes: u64, access: Access, threads: u32) -> Load {
    Load { access, threads, depth: Some(16), ..Load::new(0.0, Sizes::One(Bytes(bytes))) }
}

#[cfg(test)]
mod tests {
    use super::super::find;
    use super::*;

    #[test]
    fn phases_come_in_front() {
        let read = || find("random-read-4k").expect("built in").expect("sound");
        let names = |how| {
            let workload = read().preconditioned(how, 2, 512);
            workload.validate().expect("sound");
            workload.phases.iter().map(|phase| phase.name.clone()).collect::<Vec<_>>()
        };
        assert_eq!(names(Precondition::Fresh), ["measure"]);
        assert_eq!(names(Precondition::Fill), ["fill", "measure"]);
        assert_eq!(names(Precondition::Random), ["fill", "precondition", "measure"]);
        let workload = read().preconditioned(Precondition::Workload, 2, 512);
        let mirror = &workload.phases[1].loads[0];
        assert_eq!((mirror.read_percent, mirror.threads, mirror.depth()), (0.0, 16, 16));
        assert!(!workload.phases[1].measured && workload.phases[2].measured);
    }

    #[test]
    fn bytes_shrink_and_shares_stay() {
        let workload = find("fujitsu-database").expect("built in").expect("sound").scaled(64.0);
        assert_eq!(workload.phases[0].loads[0].region.size, Some(Extent::Bytes(500_000_000 >> 16 << 16)));
        let mut workload = find("random-read-4k").expect("built in").expect("sound");
        assert_eq!(workload.clone().scaled(64.0), workload);
        // An object stays the same share of an erase block.
        workload.phases[0].loads[0].object = Some(Bytes(32 << 20));
        assert_eq!(workload.scaled(64.0).phases[0].loads[0].object, Some(Bytes(512 << 10)));
    }
}
