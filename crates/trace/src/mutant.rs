//! Planted mutants of traces, the lab and reports: defects that their tests must find. Compiled in only with the feature `mutants`.
//!
//! One list for the three crates, since all of them can see this one. The storage layer has its own (`ftl/src/mutant.rs`). Which test finds
//! which stands in `tests/planted.py`.

/// Whether a planted defect is switched on: always `false` in a build without the feature `mutants`.
#[macro_export]
#[doc(hidden)]
macro_rules! mutant {
    ($name:ident) => {{
        #[cfg(feature = "mutants")]
        {
            $crate::mutants::is_on($crate::mutants::Mutant::$name)
        }
        #[cfg(not(feature = "mutants"))]
        {
            false
        }
    }};
}

planted::defects! {
    // Traces.
    BeyondTheEnd "a request that would reach over the end of the device is left there"
    TraceTwice "each of several devices plays all of a trace"
    SteadyArrivals "a made-up mail server knows no rush"
    // Measuring.
    LateStart "latency in an open loop counts from when a request was made"
    ManyNines "percentiles are shown that the samples cannot carry"
    StumpCounts "an interval counts alike however short it was"
    FallingIsSteady "only a rising line makes a window unsteady"
    NoiseDiffers "every difference counts as more than noise"
    // Runs.
    BegunIsDone "a part that was begun counts as done when a run goes on"
    // Reports.
    PublishedAnywhere "a published figure stands beside every load"
}
