//! A short series of seeds in every test run; `make soak` runs the long one.

/// Every promise holds, and the series is worth something: it cuts, recovers and grooms.
#[test]
fn every_seed_holds() {
    let (mut cuts, mut recovery_cuts, mut freed) = (0, 0, 0);
    for seed in 1..=400 {
        match sim::run(seed) {
            Ok(report) => {
                cuts += report.cuts;
                recovery_cuts += report.recovery_cuts;
                freed += report.freed_lebs;
            }
            Err(failure) => panic!("seed {seed}: {failure:?}; replay with: vsl-sim --seed {seed}"),
        }
    }
    assert!(cuts > 2000 && recovery_cuts > 300 && freed > 10_000, "{cuts} cuts, {recovery_cuts}, {freed} freed");
}

/// The same seed gives the same run.
#[test]
fn a_seed_replays() {
    for seed in 1..=20 {
        assert_eq!(sim::run(seed), sim::run(seed), "seed {seed}");
    }
}
