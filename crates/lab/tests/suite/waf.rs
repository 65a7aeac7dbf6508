//! Write amplification of the policies, on a device that is small enough for every test run.

use lab::waf::{Cell, Measured, Policy, Setup, Traffic, Workload, cells, measure};

const SETUP: Setup = Setup { sectors: 131_072, drive_writes: 8, loops: 1, as_published: false, wear: None, seed: 7 };

fn measured(workload: Workload, policy: Policy, over_provisioning: f64) -> Measured {
    let cell = Cell { traffic: Traffic::Made(workload), over_provisioning, policy };
    cell.measure(&SETUP, &|| false).expect("the layer takes every request").expect("nobody stopped it")
}

fn amplification(workload: Workload, policy: Policy) -> f64 {
    measured(workload, policy, 0.15).write_amplification
}

#[test]
fn uniform_traffic_is_as_theory_says_and_separation_costs_nothing() {
    let greedy = measured(Workload::Uniform, Policy::GreedyOneStream, 0.15);
    let theory = greedy.theory.expect("there is a theory of it");
    assert!((greedy.write_amplification / theory - 1.0).abs() < 0.02, "{greedy:?}");
    let own = amplification(Workload::Uniform, Policy::Lifetime);
    assert!(own < greedy.write_amplification * 1.02, "{own} {}", greedy.write_amplification);
}

#[test]
fn lifetime_groups_beat_what_is_published() {
    for workload in [Workload::HotCold, Workload::Zipf, Workload::Tenants] {
        let own = amplification(workload, Policy::Lifetime);
        for policy in [Policy::Dac, Policy::SepBit, Policy::CostBenefit] {
            let other = amplification(workload, policy);
            assert!(own < other * 1.02, "{} under {}: {other}, own {own}", policy.name(), workload.name());
        }
    }
}

#[test]
fn every_policy_takes_every_workload() {
    let setup = Setup { sectors: 16_384, drive_writes: 2, ..SETUP };
    let traffic: Vec<Traffic> = Workload::ALL.into_iter().map(Traffic::Made).collect();
    let cells = cells(&traffic, &[0.2], &Policy::ALL);
    let all = measure(&setup, &cells, 2, &|| false, &|_| {}).expect("taken");
    assert_eq!(all.len(), Workload::ALL.len() * Policy::ALL.len());
    assert!(all.iter().all(|cell| (1.0..12.0).contains(&cell.write_amplification)), "{all:?}");
    // The order is that of the cells, and a second time gives the same.
    let again = measure(&setup, &cells[..9], 1, &|| false, &|_| {}).expect("taken");
    assert!(again.iter().zip(&all).all(|(a, b)| a.over_time == b.over_time && a.policy == b.policy));
}

/// The stream that trims go to has no LEB open at times, while others have so much room that nothing is groomed.
#[test]
fn trims_are_taken_wherever_there_is_room() {
    let setup = Setup { sectors: 65_536, drive_writes: 24, seed: 2, ..SETUP };
    let traffic = Traffic::Made(Workload::FilesTrimmed);
    let cell = Cell { traffic, over_provisioning: 0.15, policy: Policy::Dac };
    let measured =
        cell.measure(&setup, &|| false).unwrap_or_else(|stuck| panic!("{stuck}")).expect("nobody stopped it");
    assert!((1.0..3.0).contains(&measured.write_amplification), "{measured:?}");
}

#[test]
fn wear_is_told_where_there_is_any() {
    let cell = Cell { traffic: Traffic::Made(Workload::HotCold), over_provisioning: 0.15, policy: Policy::Lifetime };
    let with = |wear: Option<bool>| {
        let setup = Setup { sectors: 16_384, drive_writes: 30, wear, ..SETUP };
        cell.measure(&setup, &|| false).expect("taken").expect("nobody stopped it")
    };
    assert!(with(None).erases.is_none());
    let (levelled, left) = (with(Some(true)), with(Some(false)));
    let (erases, left_alone) = (levelled.erases.expect("it wears"), left.erases.expect("it wears"));
    assert!(left_alone.moved_a_write == 0.0 && erases.moved_a_write < 0.02, "{erases:?} {left_alone:?}");
    let width = |erases: &lab::waf::Erases| erases.most - erases.least;
    assert!(width(&erases) < width(&left_alone), "{erases:?} {left_alone:?}");
    assert!(levelled.write_amplification < left.write_amplification * 1.03);
}

#[test]
fn what_is_stopped_keeps_what_is_finished() {
    let cells = cells(&[Traffic::Made(Workload::Zipf)], &[0.15], &[Policy::Greedy]);
    assert_eq!(measure(&SETUP, &cells, 1, &|| true, &|_| {}), Ok(Vec::new()));
}
