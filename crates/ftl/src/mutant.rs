//! Planted mutants: defects that the test suites must find. Compiled in only with the feature `mutants`.

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

/// The defects, and the switch.
#[cfg(feature = "mutants")]
pub mod mutants {
    use std::cell::Cell;

    /// A planted defect.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Mutant {
        /// A FUA write is answered before it is durable.
        DroppedFua,
        /// A flush is answered at once.
        EarlyFlush,
        /// The media is synced before the programs it must cover are done.
        SyncBeforePrograms,
        /// An emptied LEB is erased before what emptied it is durable.
        EraseBeforeDurable,
        /// LEBs newer than the checkpoint are groomed.
        GroomTheWindow,
        /// The groomer works before the checkpoint that ends a recovery counts.
        GroomBeforeStart,
        /// The groomer maps its copy over newer data.
        GroomOverwrites,
        /// The anchor is written before what the checkpoint points to is durable.
        AnchorBeforeDurable,
        /// Overwritten sectors stay live.
        StaleLiveCount,
        /// Replay ignores trim records.
        LostTrim,
        /// Replay takes incomplete batches.
        TornBatch,
        /// Replay applies entries in the order of their place instead of their sequence.
        UnorderedReplay,
        /// Pages older than the checkpoint count as a gap at the end of a LEB.
        GapSinceCheckpoint,
        /// Replay leaves out the LEBs that were open at the checkpoint.
        ForgottenOpenLeb,
        /// An attach epoch is used before it is on media.
        LateEpoch,
    }

    impl Mutant {
        /// Those that are wrong; the others only waste.
        pub const DEADLY: [Mutant; 15] = [
            Mutant::DroppedFua,
            Mutant::EarlyFlush,
            Mutant::SyncBeforePrograms,
            Mutant::EraseBeforeDurable,
            Mutant::GroomTheWindow,
            Mutant::GroomBeforeStart,
            Mutant::GroomOverwrites,
            Mutant::AnchorBeforeDurable,
            Mutant::StaleLiveCount,
            Mutant::LostTrim,
            Mutant::TornBatch,
            Mutant::UnorderedReplay,
            Mutant::GapSinceCheckpoint,
            Mutant::ForgottenOpenLeb,
            Mutant::LateEpoch,
        ];
    }

    thread_local! {
        static ON: Cell<Option<Mutant>> = const { Cell::new(None) };
    }

    /// Switches one defect on for this thread, or all off.
    pub fn switch(mutant: Option<Mutant>) {
        ON.set(mutant);
    }

    /// Whether it is on.
    pub fn is_on(mutant: Mutant) -> bool {
        ON.get() == Some(mutant)
    }
}
