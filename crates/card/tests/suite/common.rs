//! A small module for the tests.

use card::{Module, ModuleConfig, Op, Request, Surroundings, VirtualDevice};
use profile::Profile;

/// The reviewed Duo with few and small chips: 5 of 64 MiB with 2 dies each, one of them parity.
pub fn small() -> Profile {
    let mut profile = profile::find("iodrive-duo-640-mlc").expect("built in");
    let profile::Device::Flash(flash) = &mut profile.device else { panic!("a flash card") };
    let module = &mut flash.module;
    module.chips.count = 5;
    module.chips.bytes = 64 << 20;
    module.nand.dies_per_chip = 2;
    module.nand.pages_per_block = 32;
    module.nand.channels = 5;
    module.controller.buffer_bytes = 1 << 20;
    module.controller.reserve_percent = 5.0;
    profile
}

/// What it is made with when the host gets so many per cent of its data flash.
pub fn config(profile: &Profile, percent: u64) -> ModuleConfig<'_> {
    let module = &profile.flash().expect("a flash card").module;
    let data = module.chips.bytes * u64::from(module.chips.count - module.chips.parity);
    ModuleConfig {
        module,
        card: None,
        capacity_bytes: data * percent / 100,
        sector_bytes: 4096,
        scale: 1,
        surroundings: Surroundings::default(),
        policy: None,
        pacing: None,
        grooms_ahead: true,
        seed: 7,
    }
}

/// Writes it from beginning to end, from a moment on; gives the moment when that is done.
pub fn fill(module: &mut Module, from: u64) -> u64 {
    let mut now = from;
    for offset in (0..module.bytes() / 131_072).map(|n| n * 131_072) {
        module.submit(now, 0, Request::new(Op::Write, offset, 131_072));
        let answer = loop {
            now = module.next_event().expect("a write is under way");
            module.advance(now);
            if let Some(answer) = module.answer() {
                break answer;
            }
        };
        answer.result.expect("taken");
    }
    now
}
