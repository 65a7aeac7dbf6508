//! Planted mutants of NVMe: defects that its tests must find. Compiled in only with the feature `mutants`.
//!
//! One list for this crate and for the NVMe server of `export`, which can see it. Which test finds which stands in
//! `tests/planted.py`.

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
    // Authentication.
    ProofNotCompared "whoever answers a challenge counts as having the secret"
}
