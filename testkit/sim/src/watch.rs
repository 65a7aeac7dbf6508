//! Who watches a long run.

/// Is told how far a run is, and may end it.
pub trait Watch: Sync {
    /// This seed or sequence begins, as all before it did.
    fn begins(&self, number: u64);

    /// Whether no further one shall begin.
    fn is_over(&self) -> bool;
}

/// Nobody.
impl Watch for () {
    fn begins(&self, _: u64) {}

    fn is_over(&self) -> bool {
        false
    }
}
