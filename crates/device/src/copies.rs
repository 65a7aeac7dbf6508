//! The two copies of a die's superblock: which one counts, and whether the pair can be believed.
//!
//! Whatever is to be remembered is written to both copies, one after the other, before anything depends on it. Each copy
//! alone therefore says all that counts, and losing either costs nothing: not what was written, and not the device.

use std::path::Path;

use media::{Backing, MediaError};

use crate::AttachError;
use crate::refusal::{Refusal, refused};
use crate::superblock::{NotSuperblock, Superblock};

/// One copy as it was read.
pub(crate) type Copy = Result<Vec<u8>, MediaError>;

/// The newer valid one of two copies, which also says whether the other is [as it should be](Superblock::in_step).
///
/// # Errors
/// Neither copy is valid, or a newer program wrote one of them: older ones must keep off then, whatever the other copy says.
pub(crate) fn choose_superblock(copies: [Copy; 2]) -> Result<Superblock, Refusal> {
    let mut valid = Vec::new();
    let mut refusal = None;
    for (number, copy) in (0..).zip(copies) {
        let found = match copy {
            Ok(bytes) => Superblock::decode(&bytes).map_err(Refusal::NoSuperblock),
            Err(error) => Err(Refusal::Media(error)),
        };
        match found {
            Ok(superblock) => valid.push((number, superblock)),
            Err(Refusal::NoSuperblock(NotSuperblock::Version(version))) => {
                return Err(Refusal::NoSuperblock(NotSuperblock::Version(version)));
            }
            Err(found) => refusal = Some(worse(refusal, found)),
        }
    }
    valid.sort_by_key(|(_, superblock)| superblock.generation);
    let in_place = valid.iter().all(|(number, superblock)| superblock.generation % 2 == *number);
    let in_step = match valid.as_slice() {
        [(_, older), (_, newer)] => in_place && older.generation.abs_diff(newer.generation) == 1,
        _ => false,
    };
    match valid.pop() {
        Some((_, newest)) => Ok(Superblock { in_step, ..newest }),
        None => Err(refusal.expect("a copy is valid, or there is a reason why not")),
    }
}

/// The superblock of a backing file.
pub(crate) fn decode(backing: &Backing, path: &Path) -> Result<Superblock, AttachError> {
    let copies = [0, 1].map(|copy| backing.read_label(copy).map_err(MediaError::from));
    choose_superblock(copies).map_err(|refusal| refused(refusal, path))
}

/// Of two copies that are none, the one that says more: a damaged or unreadable superblock was one, a blank or foreign place may
/// never have been.
fn worse(first: Option<Refusal>, second: Refusal) -> Refusal {
    let says = |refusal: &Refusal| match refusal {
        Refusal::NoSuperblock(NotSuperblock::Damaged(_)) => 2,
        Refusal::NoSuperblock(_) => 0,
        _ => 1,
    };
    match first {
        Some(first) if says(&first) >= says(&second) => first,
        _ => second,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::superblock::tests::sample;

    fn copy(generation: u64) -> Vec<u8> {
        Superblock { generation, ..sample() }.encode(0)
    }

    fn chosen(copies: [Copy; 2]) -> Result<(u64, bool), Refusal> {
        choose_superblock(copies).map(|superblock| (superblock.generation, superblock.in_step))
    }

    #[test]
    fn the_newer_copy_counts_and_only_neighbours_are_in_step() {
        assert_eq!(chosen([Ok(copy(4)), Ok(copy(5))]), Ok((5, true)));
        assert_eq!(chosen([Ok(copy(6)), Ok(copy(5))]), Ok((6, true)));
        assert_eq!(chosen([Ok(copy(8)), Ok(copy(5))]), Ok((8, false)), "a write of the other copy was lost");
        assert_eq!(chosen([Ok(copy(4)), Ok(copy(4))]), Ok((4, false)), "one of them is not where it belongs");
        assert_eq!(chosen([Ok(copy(5)), Ok(copy(4))]), Ok((5, false)), "neither is where it belongs");
    }

    #[test]
    fn one_copy_is_enough_and_is_not_believed_blindly() {
        let mut rotten = copy(5);
        rotten[100] ^= 1;
        for bad in [Ok(rotten), Ok(vec![0; 4096]), Err(MediaError::Os(rustix::io::Errno::IO))] {
            assert_eq!(chosen([Ok(copy(4)), bad.clone()]), Ok((4, false)));
            assert_eq!(chosen([bad, Ok(copy(3))]), Ok((3, false)));
        }
    }

    /// The version is as far from being believed as any other byte, as long as the checksum does not hold.
    #[test]
    fn a_version_counts_only_with_its_checksum() {
        for bit in 0..32 {
            let mut rotten = copy(5);
            rotten[8 + bit / 8] ^= 1 << (bit % 8);
            assert_eq!(chosen([Ok(copy(4)), Ok(rotten.clone())]), Ok((4, false)), "bit {bit}");
            let only = chosen([Ok(rotten.clone()), Ok(rotten)]);
            assert!(
                matches!(only, Err(Refusal::NoSuperblock(NotSuperblock::Damaged(_)))),
                "bit {bit} of both copies: {only:?}"
            );
        }
        let mut newer = copy(5);
        newer[8] = 200;
        let end = newer.len() - 4;
        let sum = crc_fast::crc32_iscsi(&newer[..end]);
        newer[end..].copy_from_slice(&sum.to_le_bytes());
        let refused = Err(Refusal::NoSuperblock(NotSuperblock::Version(200)));
        assert_eq!(chosen([Ok(copy(4)), Ok(newer)]), refused, "older programs keep off what a newer one wrote");
    }

    #[test]
    fn of_two_bad_copies_the_one_that_says_more_is_named() {
        let mut rotten = copy(5);
        rotten[100] ^= 1;
        let unreadable = || Err(MediaError::Os(rustix::io::Errno::IO));
        let damaged = Err(Refusal::NoSuperblock(NotSuperblock::Damaged("its checksum")));
        assert_eq!(chosen([Ok(vec![0; 4096]), Ok(rotten.clone())]), damaged);
        assert_eq!(chosen([Ok(rotten), unreadable()]), damaged);
        assert!(matches!(chosen([Ok(vec![0; 4096]), unreadable()]), Err(Refusal::Media(_))), "it may hold a device");
    }
}
