//! Sectors that tell who wrote them.

use random::SplitMix64;

/// What is compared with at once, rather than byte by byte.
const ZEROS: [u8; 512] = [0; 512];

/// Fills `sector` with what write `op` puts at `lba`; zeros for a trim or a sector never written.
pub fn fill(sector: &mut [u8], lba: u64, op: u64, zero: bool) {
    if zero {
        sector.fill(0);
        return;
    }
    let mut random = SplitMix64::new(lba.rotate_left(32) ^ op);
    for word in sector.chunks_exact_mut(8) {
        word.copy_from_slice(&random.bits().to_le_bytes());
    }
}

/// Whether `sector` holds exactly that.
pub fn holds(sector: &[u8], lba: u64, op: u64, zero: bool) -> bool {
    if zero {
        return sector.chunks(ZEROS.len()).all(|bytes| *bytes == ZEROS[..bytes.len()]);
    }
    let mut random = SplitMix64::new(lba.rotate_left(32) ^ op);
    sector.chunks_exact(8).all(|word| word == random.bits().to_le_bytes())
}
