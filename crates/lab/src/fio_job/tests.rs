use super::*;
use crate::workload::{Access, Arrivals, Bytes, Choose, Extent, Placement, Several, Sizes, Streams};

fn job(text: &str) -> (Workload, Vec<String>) {
    from_text("t", "t.fio", text).unwrap_or_else(|error| panic!("{error}"))
}

fn error(text: &str) -> String {
    from_text("t", "t.fio", text).expect_err(text).to_string()
}

#[test]
fn a_job_file_becomes_a_workload() {
    let (workload, notes) = job("\
; a comment
[global]
ioengine=libaio
direct=1
bs=8k
runtime=60
time_based
group_reporting

[mix]   # both
rw=randrw
rwmixread=70
iodepth=32
numjobs=4
ramp_time=5s
size=10g
offset=10%

[log]
stonewall
rw=write
bs=64k,128k
rate_iops=100
");
    assert_eq!(
        notes,
        [
            "direct: makes no difference here",
            "group_reporting: makes no difference here",
            "ioengine: makes no difference here"
        ]
    );
    let [mix, log] = &workload.phases[..] else { panic!("two phases: {workload:?}") };
    assert_eq!(
        (mix.name.as_str(), mix.ramp.nanos(), mix.stop.duration.map(Time::nanos)),
        ("mix", 5_000_000_000, Some(60_000_000_000))
    );
    let load = &mix.loads[0];
    assert_eq!((load.read_percent, load.threads, load.depth()), (70.0, 4, 32));
    assert_eq!((load.size.clone(), load.align), (Sizes::One(Bytes(8192)), Some(Bytes(8192))));
    assert_eq!((load.region.offset, load.region.size), (Extent::Percent(10.0), Some(Extent::Bytes(10 << 30))));
    assert_eq!((&load.access, load.thread_bytes), (&Access::Random, None));
    let load = &log.loads[0];
    assert_eq!(
        (&load.access, load.streams, &load.size),
        (&Access::Sequential, Streams::Same, &Sizes::One(Bytes(131_072)))
    );
    assert_eq!(load.rate.map(|rate| (rate.per_second, rate.arrivals)), Some((100.0, Arrivals::Fixed)));
}

#[test]
fn jobs_side_by_side_share_a_phase() {
    let (workload, _) = job(
        "[global]\nruntime=1m\ntime_based=1\n[a]\nrw=randread\n[b]\nrw=randwrite\nrate_iops=10\nnumjobs=3\nrate_process=poisson\n",
    );
    assert_eq!(workload.phases.len(), 1);
    let names: Vec<&str> = workload.phases[0].loads.iter().map(|load| load.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(workload.phases[0].loads[1].rate.map(|rate| rate.per_second), Some(30.0));
    let message = error("[a]\nruntime=5\ntime_based\n[b]\nruntime=6\ntime_based\n");
    assert!(message.starts_with("t.fio:4: job 'b' runs beside"), "{message}");
}

#[test]
fn without_a_time_a_job_moves_its_size() {
    let (workload, _) =
        job("[a]\nrw=write\nsize=1g\n[b]\nstonewall\nrw=read\n[c]\nstonewall\nrw=randread\nsize=1g\nio_size=10m\n");
    let amounts: Vec<_> = workload.phases.iter().map(|phase| phase.loads[0].thread_bytes).collect();
    assert_eq!(amounts, [Some(Extent::Bytes(1 << 30)), Some(Extent::Percent(100.0)), Some(Extent::Bytes(10 << 20))]);
}

#[test]
fn sizes_and_distributions() {
    let load = |lines: &str| job(&format!("[a]\nrw=randrw\n{lines}\n")).0.phases[0].loads[0].clone();
    let weights = |sizes: &Sizes| sizes.list().iter().map(|entry| (entry.size.0, entry.weight)).collect::<Vec<_>>();
    let split = load("bssplit=4k/60:64k/:8k/20,512/100");
    assert_eq!(weights(&split.size), [(4096, 60.0), (65536, 20.0), (8192, 20.0)]);
    assert_eq!(weights(split.write_size.as_ref().expect("writes differ")), [(512, 100.0)]);
    assert_eq!(split.align, Some(Bytes(512)));
    assert_eq!(weights(&load("bsrange=1k-4k").size), [(1024, 1.0), (2048, 1.0), (3072, 1.0), (4096, 1.0)]);
    assert_eq!(load("random_distribution=zipf:1.2").access, Access::Zipf(1.2));
    assert!(matches!(load("random_distribution=zoned:60/10:40/90").access, Access::Zones(zones) if zones.len() == 2));
    assert_eq!(load("percentage_random=80").access, Access::Mixed(80.0));
    assert_eq!(load("blockalign=64kb").align, Some(Bytes(65536)));
    let (workload, _) = job("[a]\nrw=randtrim\nrandseed=9\n");
    assert_eq!((workload.seed, workload.phases[0].loads[0].trim_percent), (9, 100.0));
}

#[test]
fn placements_are_those_of_fio() {
    let placement = |lines: &str| job(&format!("[a]\nrw=randwrite\n{lines}\n")).0.phases[0].loads[0].placement.clone();
    let several = |among: &[u8], choose| Some(Placement::Several(Several { among: among.to_vec(), choose }));
    assert_eq!(placement("fdp=1\nfdp_pli=3"), Some(Placement::One(3)));
    assert_eq!(placement("dataplacement=fdp\nplids=1,2\nplid_select=random"), several(&[1, 2], Choose::Random));
    assert_eq!(placement("fdp=1\nfdp_pli=1,2\nfdp_pli_select=roundrobin"), several(&[1, 2], Choose::InTurn));
    assert_eq!(placement("fdp"), several(&[], Choose::InTurn), "all that the device has");
    for off in ["fdp=0\nfdp_pli=3", "plids=3", "dataplacement=none\nplids=3"] {
        assert_eq!(placement(off), None, "{off}");
    }
}

#[test]
fn a_run_from_each_random_place_is_an_object() {
    let load = |lines: &str| job(&format!("[a]\nbs=128k\n{lines}\n")).0.phases[0].loads[0].clone();
    let object = load("rw=randwrite:32\nba=4m");
    assert_eq!((object.object, object.align, &object.access), (Some(Bytes(4 << 20)), None, &Access::Random));
    assert_eq!(load("rw=randwrite:1").object, None);
}

#[test]
fn what_cannot_be_followed_names_line_and_option() {
    for (text, expected) in [
        ("rw=read\n", "t.fio:1: 'rw=read' stands before the first section"),
        ("[a\n", "t.fio:1: '[a' is no section"),
        ("[global]\nbs=4k\n", "t.fio: there is no job in it"),
        ("[a]\nrw=fast\n", "t.fio:2: rw: 'fast' is not known; expected read, write"),
        ("[a]\n\nbs=4x\n", "t.fio:3: bs: 'x' is not a unit"),
        ("[a]\nthinktime=100\n", "t.fio:2: thinktime: is not understood, and may change the I/O"),
        ("[a]\nloops=2\n", "t.fio:2: loops: is not understood"),
        ("[a]\nfsync=1\n", "t.fio:2: fsync: is not understood"),
        ("[a]\nbs\n", "t.fio:2: bs: has no value"),
        ("[a]\niodepth=many\n", "t.fio:2: iodepth: 'many' is no whole number"),
        ("[a]\nruntime=1 week\n", "t.fio:2: runtime: '1 week' is no time"),
        ("[a]\ntime_based\n", "t.fio:1: job 'a': time_based needs runtime"),
        ("[a]\nbssplit=4k/60:8k/60\n", "percentages come to 120"),
        ("[a]\nbsrange=8k-4k\n", "expected the smaller size first"),
        ("[a]\nsize=${SIZE}\n", "variables are not filled in"),
        ("[a]\nrwmixread=101\n", "'101' is no percentage"),
        ("[a]\nrw=read\npercentage_random=50\n", "need a random rw"),
        ("[a]\nrandom_distribution=pareto:0.9\n", "'pareto' is not known"),
        ("[a]\nnumjobs=0\n", "threads = 0"),
        ("[a]\nrw = randread : 8\n", "'randread : 8' is not known"),
        ("[a]\nrw=write:8\n", "'write:8' is not known"),
        ("[a]\nrw=randwrite:8\n", "give one bs, and blockalign as 8 times that"),
        ("[a]\nrw=randwrite:8\nba=64k\n", "give one bs, and blockalign as 8 times that"),
        ("[a]\nrw=randrw:8\nba=32k\n", "load 'a': object: whole objects are read, written or trimmed"),
        ("[a]\nfdp=2\n", "t.fio:2: fdp: '2' is neither 0 nor 1"),
        ("[a]\ndataplacement=streams\n", "dataplacement: streams of NVMe's directives are not simulated"),
        ("[a]\nplids=0-3\n", "plids: '0-3' is no whole number from 0 to 255"),
        ("[a]\nfdp_pli=0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16\n", "17 handles; fio takes at most 16"),
        ("[a]\nplid_select=scheme\n", "give each of its parts a job with plids"),
    ] {
        let message = error(text);
        assert!(message.contains(expected), "{text:?}: {message}");
    }
}

#[test]
fn options_are_named_as_on_a_command_line() {
    let option = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let (workload, _) = from_options("cli", &[option("rw", "randwrite"), option("bs", "4k"), option("runtime", "30")])
        .expect("a workload");
    assert_eq!(workload.phases[0].loads[0].read_percent, 0.0);
    let message = from_options("cli", &[option("rw", "randwrite"), option("bs", "4q")]).expect_err("unit").to_string();
    assert!(message.starts_with("--bs: bs: 'q' is not a unit"), "{message}");
    assert!(
        read(Path::new("/nonexistent.fio"))
            .expect_err("no file")
            .to_string()
            .starts_with("/nonexistent.fio: No such file")
    );
}
