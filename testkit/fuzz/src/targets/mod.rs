//! Everything that takes bytes from outside.

mod api;
mod backup;
mod files;
mod flat;
mod handshake;
mod kv;
mod labels;
mod medium;
mod nvme;
mod texts;
mod traces;
mod transmission;
mod tree;
mod vhost;
mod wire;

/// One thing that takes bytes from outside.
pub struct Target {
    /// What it is called on the command line.
    pub name: &'static str,
    /// What it feeds.
    pub about: &'static str,
    /// Its part of the executions when all run, as against the parts of the others.
    pub weight: u64,
    /// Input to begin with; without any, input is nothing but choices.
    pub corpus: fn() -> Vec<Vec<u8>>,
    /// Words that mean something to it.
    pub words: &'static [&'static str],
    /// Takes any bytes; a panic, on any thread, is a finding.
    pub run: fn(&[u8]),
}

impl Target {
    /// Its part of so many executions of all targets.
    pub fn share(&self, executions: u64) -> u64 {
        let all: u64 = TARGETS.iter().map(|target| target.weight).sum();
        u128::from(executions).saturating_mul(self.weight.into()).div_ceil(all.max(1).into()) as u64
    }
}

/// No input to begin with: it is nothing but choices.
fn choices() -> Vec<Vec<u8>> {
    Vec::new()
}

/// Every target.
pub static TARGETS: &[Target] = &[
    handshake::TARGET,
    transmission::TARGET,
    nvme::session::TARGET,
    nvme::queue::TARGET,
    nvme::host::TARGET,
    nvme::auth::TARGET,
    vhost::TARGET,
    labels::TARGET,
    medium::TARGET,
    kv::TARGET,
    backup::TARGET,
    tree::TARGET,
    api::REQUESTS,
    api::BYTES,
    files::STATE,
    files::SETTINGS,
    texts::JOBS,
    texts::WORKLOADS,
    texts::PROFILES,
    texts::PUBLISHED,
    texts::SOURCES,
    texts::SIZES,
    traces::RECOGNISED,
    traces::VSCSI_TEXT,
    traces::VSCSI_1,
    traces::VSCSI_2,
    traces::MSR_TEXT,
    traces::ALIBABA_TEXT,
    traces::TENCENT_TEXT,
    traces::FIU_TEXT,
    traces::BLKPARSE_D,
    traces::BLKPARSE_Q,
    traces::IOLOG_2,
    traces::IOLOG_3,
];

/// The target of a name.
pub fn find(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}
