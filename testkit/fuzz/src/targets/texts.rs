//! Texts that users write: job files, workloads, data sheets, published measurements, sizes.

use lab::workload::{Workload, from_json, from_toml, names};
use lab::{fio_job, published};
use profile::Profile;

use super::Target;

pub const JOBS: Target = Target {
    name: "fio-job",
    about: "fio's job files and options",
    weight: 120,
    corpus: jobs,
    words: &[
        "[global]",
        "[job]",
        "rw=randrw",
        "rwmixread=",
        "bs=4k,8k,16k",
        "bssplit=4k/50:8k/50",
        "bsrange=1k-64k",
        "iodepth=",
        "numjobs=",
        "runtime=",
        "ramp_time=",
        "size=100%",
        "offset=10%",
        "stonewall",
        "rate_iops=",
        "thinktime=",
        "random_distribution=zipf:1.2",
        "random_distribution=zoned:50/5:30/15:20/",
        "percentage_random=",
        "randseed=",
        "io_size=",
        "blockalign=",
        "offset_increment=",
        "io_limit=",
        "time_based",
        "loops=",
        "fsync=",
        "include x",
    ],
    run: |input| {
        let text = text(input);
        if let Ok((workload, _)) = fio_job::from_text("job", "job.fio", &text) {
            sound(&workload);
        }
        let options: Vec<(String, String)> = text
            .lines()
            .filter_map(|line| line.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned())))
            .collect();
        if let Ok((workload, _)) = fio_job::from_options("options", &options) {
            sound(&workload);
        }
    },
};

pub const WORKLOADS: Target = Target {
    name: "workload",
    about: "workloads in TOML and JSON",
    weight: 100,
    corpus: || {
        let files = names().iter().map(|named| named.text.as_bytes().to_vec());
        let json = names()
            .iter()
            .filter_map(|named| from_toml(named.text).ok().and_then(|workload| serde_json::to_vec(&workload).ok()));
        files.chain(json).collect()
    },
    words: &[
        "[[phase]]",
        "[[phase.load]]",
        "read_percent = ",
        "size = ",
        "access = { zipf = 1.2 }",
        "threads = ",
        "depth = ",
        "access = { hot-cold = { accesses = 90, space = 10 } }",
        "stop = { duration = \"1s\" }",
        "rate = { per_second = 1 }",
        "region = { offset = \"10%\", size = \"1GiB\" }",
        "thread_bytes = ",
        "align = ",
        "\"584942417355 years\"",
    ],
    run: |input| {
        let text = text(input);
        if let Ok(workload) = from_toml(&text) {
            sound(&workload);
        }
        if let Ok(workload) = from_json(&text) {
            sound(&workload);
        }
    },
};

pub const PROFILES: Target = Target {
    name: "profile",
    about: "data sheets of devices",
    weight: 50,
    corpus: || {
        let sheets = profile::all().unwrap_or_default();
        sheets.iter().filter_map(|sheet| toml::to_string(sheet).ok()).map(String::into_bytes).collect()
    },
    words: &["[module]", "[disk]", "[array]", "[bridge]", "[drivers.linux]", "count = ", "level = \"raid5\""],
    run: |input| {
        if let Ok(sheet) = toml::from_str::<Profile>(&text(input)) {
            let written = toml::to_string(&sheet).expect("a sheet can be written");
            assert_eq!(toml::from_str::<Profile>(&written).as_ref(), Ok(&sheet), "{written}");
        }
    },
};

pub const PUBLISHED: Target = Target {
    name: "published",
    about: "tables of published measurements",
    weight: 130,
    corpus: || {
        let header = "source,device,array,format,workload,read_pct,access,block_kib,outstanding,metric,unit,value,note";
        let rows = published::rows().unwrap_or_default();
        let lines: Vec<String> = rows.iter().map(published::Row::line).collect();
        lines.chunks(3).take(60).map(|rows| format!("{header}\n{}\n", rows.join("\n")).into_bytes()).collect()
    },
    words: &["random", "sequential", "raid0", "max", "\"48, device queue 32\"", "MB/s", "IO/s", "8-16", "4,8"],
    run: |input| {
        if let Ok(rows) = published::rows_from(&text(input)) {
            let sources = published::sources().expect("the built-in sources");
            for row in rows {
                row.line();
                if let Some(source) = sources.iter().find(|source| source.name == row.source) {
                    source.for_workload(&row.workload);
                }
            }
        }
    },
};

pub const SOURCES: Target = Target {
    name: "sources",
    about: "what is said of the sources of published measurements",
    weight: 30,
    corpus: || {
        let sources = published::sources().unwrap_or_default();
        let one = |source: &published::Source| toml::to_string(source).map(|text| format!("[[source]]\n{text}"));
        let texts = sources.iter().filter_map(|source| one(source).ok());
        texts.map(|text| text.replace("[[group]]", "[[source.group]]").into_bytes()).collect()
    },
    words: &["[[source]]", "[[source.group]]", "measured = ", "held = \"50%\"", "file = \"1GiB\"", "threads = "],
    run: |input| {
        if let Ok(sources) = published::sources_from(&text(input)) {
            sources.iter().for_each(|source| drop(source.for_workload("4k-steady")));
        }
    },
};

pub const SIZES: Target = Target {
    name: "size",
    about: "sizes with units",
    weight: 200,
    corpus: || ["1.5GiB", "320GB", "64K", "1_000", " 2.5 MB ", "16383PiB"].map(|text| text.as_bytes().to_vec()).into(),
    words: &["KiB", "kB", "P", "pib", ".", "_", "000000000000000000000000000000000000000"],
    run: |input| {
        let text = text(input);
        match size::parse(&text) {
            Ok(bytes) => {
                assert_eq!(size::parse(&size::exact(bytes)), Ok(bytes), "{text}");
                size::show(bytes);
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    },
};

fn text(input: &[u8]) -> String {
    String::from_utf8_lossy(input).into_owned()
}

/// What was taken for a workload is one, and stays the same when written and read.
fn sound(workload: &Workload) {
    workload.validate().expect("what was read is valid");
    let toml = toml::to_string(workload).expect("a workload can be written");
    let again = from_toml(&toml).unwrap_or_else(|error| panic!("{error}\n{toml}"));
    assert_eq!(&again, workload, "{toml}");
}

fn jobs() -> Vec<Vec<u8>> {
    [
        "; a comment\n[global]\nioengine=libaio\ndirect=1\nbs=8k\nruntime=60\ntime_based\n\n[mix] # both\nrw=randrw\nrwmixread=70\niodepth=32\nnumjobs=4\nramp_time=5s\nsize=10g\noffset=10%\n\n[log]\nstonewall\nrw=write\nbs=64k,128k\nrate_iops=100\n",
        "[a]\nrw=randread\nbssplit=512/10:4k/90\nruntime=1m\ntime_based\nrandom_distribution=zipf:1.1\n",
        "[b]\nrw=randwrite\nbsrange=1k-16k\nblockalign=512\nsize=50%\nrandom_distribution=zoned:60/10:30/20:8/30:2/40\n",
        "[c]\nrw=readwrite\npercentage_random=30\nrate_process=poisson\nrate_iops=5000\nnumjobs=2\noffset_increment=1g\nio_size=4g\nrandseed=7\n",
        "[d]\nrw=randtrim\nbs=4k\niodepth=1\nthinktime=10ms\nloops=3\nsize=1g\n[e]\nrw=trimwrite\nsize=1g\n",
    ]
    .map(|text| text.as_bytes().to_vec())
    .into()
}
