//! What a host says that belongs together comes to the layer, whatever stands in between.

use card::{Answer, Module, ModuleConfig, Op, Options, Policy, Request, VirtualDevice, build};
use profile::Interrupts;

use crate::common::{config, small};

/// One request after the other; each has its answer.
fn run(device: &mut dyn VirtualDevice, requests: &[Request]) {
    let mut now = 0;
    for request in requests {
        device.submit(now, 0, *request);
        let answer: Answer = loop {
            now = device.advance_to_answer(now + 1_000_000_000);
            if let Some(answer) = device.answer() {
                break answer;
            }
        };
        answer.result.expect("taken");
    }
}

/// `count` writes of 8 KiB to each of these placements.
fn writes(placements: &[u8], count: u64) -> Vec<Request> {
    let write = |at: u64, placement: u8| {
        Request::new(Op::Write, (u64::from(placement) * count + at) * 8192, 8192).placed(placement)
    };
    placements.iter().flat_map(|placement| (0..count).map(move |at| write(at, *placement))).collect()
}

#[test]
fn the_layer_hears_of_it_and_the_report_tells() {
    let profile = small();
    let of = |policy| Module::new(&ModuleConfig { policy: Some(policy), ..config(&profile, 60) }).expect("fits");
    let mut module = of(Policy::Placement);
    // Of the six streams of a module with parity two are for what is moved.
    assert_eq!(module.placements(), 4);
    let whole: Vec<u32> = (0..4).map(|placement| module.ftl().left_in_placement(placement)).collect();
    run(&mut module, &writes(&[0, 2, 3], 10));
    for (placement, whole) in (0..).zip(whole) {
        let written = if [0, 2, 3].contains(&placement) { 20 } else { 0 };
        assert_eq!(module.ftl().left_in_placement(placement), whole - written, "of placement {placement}");
    }
    assert_eq!(module.report().placed_bytes, [81_920, 0, 81_920, 81_920]);
    module.verify().expect("sound");
    // Under another policy nothing is told apart.
    let mut module = of(Policy::Greedy);
    run(&mut module, &writes(&[0, 3], 10));
    assert_eq!((module.placements(), module.report().placed_bytes), (1, Vec::new()));
}

#[test]
fn what_stands_before_a_module_passes_it_on_and_arrays_have_none() {
    let options = || Options { policy: Some(Policy::Placement), scale: 1000, ..Options::default() };
    let built = |name: &str, options: &Options| build(&profile::find(name).expect("a sheet"), options).expect("built");
    let mut held_back = options();
    held_back.driver.interrupts = Some(Interrupts { answers: 4, wait_us: 300.0 });
    for (name, options, placements) in [("sata-ssd-64", options(), 6), ("iodrive-320-mlc", held_back, 4)] {
        let mut built = built(name, &options);
        let device = built.devices[0].as_mut();
        assert_eq!(device.placements(), placements, "{name}");
        run(device, &writes(&[1, 3], 5));
        let mut placed = vec![0; placements.into()];
        (placed[1], placed[3]) = (40_960, 40_960);
        assert_eq!(device.report().placed_bytes, placed, "{name}");
    }
    let raid = built("iodrive-duo-640-mlc", &Options { arrangement: card::Arrangement::Raid0, ..options() });
    assert_eq!(raid.devices[0].placements(), 1);
}
