//! Cuts the stream of bytes that a controller sends into units, without keeping their data.

use crate::pdu::{COMMON_BYTES, Common, DATA_BYTES, DIGEST_BYTES, Digests, Fatal, INIT_BYTES, Summing};

/// What the next bytes of the stream are.
pub(super) enum Step<'a> {
    /// Part of a unit: the rest has not come yet.
    Starved,
    /// The header of a unit is complete and sound.
    Header,
    /// Some of its data.
    Data(&'a [u8]),
    /// The unit is over.
    End {
        /// Whether the data have the digest that they came with.
        sound: bool,
    },
}

enum Place {
    Header,
    Padding(usize),
    Data(usize),
    Digest([u8; DIGEST_BYTES], usize),
}

/// Holds one header at most, whatever the controller sends: data pass through.
pub(super) struct Cutter {
    header: [u8; INIT_BYTES],
    have: usize,
    common: Option<Common>,
    place: Place,
    /// Of the data so far, on a connection with digests.
    sum: Option<Summing>,
}

impl Cutter {
    pub(super) fn new() -> Cutter {
        Cutter { header: [0; INIT_BYTES], have: 0, common: None, place: Place::Header, sum: None }
    }

    /// The unit whose header was the last [`Step::Header`].
    #[inline]
    pub(super) fn unit(&self) -> Option<(Common, &[u8; INIT_BYTES])> {
        self.common.map(|common| (common, &self.header))
    }

    /// Takes bytes up to the next step, on a connection with these digests.
    ///
    /// # Errors
    /// A header is impossible, and the offset of the field that is.
    #[inline]
    pub(super) fn next<'a>(&mut self, bytes: &mut &'a [u8], digests: Digests) -> Result<Step<'a>, (Fatal, u32)> {
        loop {
            match self.place {
                Place::Header => {
                    let Some(common) = self.header(bytes, digests)? else { return Ok(Step::Starved) };
                    let padding = common.data_at.saturating_sub(common.head(digests));
                    self.place = Place::Padding(padding);
                    self.sum = digests.data.then(Summing::default);
                    return Ok(Step::Header);
                }
                Place::Padding(0) => self.place = Place::Data(self.common.map_or(0, |common| common.data_len)),
                Place::Padding(left) => {
                    let Some(taken) = take(bytes, left) else { return Ok(Step::Starved) };
                    self.place = Place::Padding(left - taken.len());
                }
                Place::Data(0) => self.place = Place::Digest([0; DIGEST_BYTES], 0),
                Place::Data(left) => {
                    let Some(taken) = take(bytes, left) else { return Ok(Step::Starved) };
                    self.place = Place::Data(left - taken.len());
                    if let Some(sum) = &mut self.sum {
                        sum.update(taken);
                    }
                    return Ok(Step::Data(taken));
                }
                Place::Digest(mut digest, have) => {
                    let expected = self.common.map_or(0, |common| common.len - common.data_at - common.data_len);
                    if have < expected {
                        let Some(taken) = take(bytes, expected - have) else { return Ok(Step::Starved) };
                        digest[have..have + taken.len()].copy_from_slice(taken);
                        self.place = Place::Digest(digest, have + taken.len());
                        continue;
                    }
                    let has_data = self.common.is_some_and(|common| common.data_len > 0);
                    let sum = self.sum.as_ref().map(Summing::finish);
                    let sound = expected == 0 || !has_data || sum == Some(digest);
                    self.place = Place::Header;
                    self.have = 0;
                    return Ok(Step::End { sound });
                }
            }
        }
    }

    /// Collects a header; nothing while it is not complete.
    #[inline]
    fn header(&mut self, bytes: &mut &[u8], digests: Digests) -> Result<Option<Common>, (Fatal, u32)> {
        if self.have == 0
            && let Some((first, rest)) = bytes.split_first_chunk::<DATA_BYTES>()
        {
            // No header is shorter. Bytes of a known number are copied by a few instructions instead of a call.
            self.header[..DATA_BYTES].copy_from_slice(first);
            (self.have, *bytes) = (DATA_BYTES, rest);
        }
        if !self.fill(bytes, COMMON_BYTES) {
            return Ok(None);
        }
        let mut first = [0; COMMON_BYTES];
        first.copy_from_slice(&self.header[..COMMON_BYTES]);
        // How much data fits is judged by the command that they are for.
        let common = Common::decode(&first, digests, usize::MAX)?;
        if !self.fill(bytes, common.head(digests)) {
            return Ok(None);
        }
        if !common.header_is_sound(&self.header) {
            return Err((Fatal::HeaderDigest, 0));
        }
        self.common = Some(common);
        Ok(Some(common))
    }

    #[inline]
    fn fill(&mut self, bytes: &mut &[u8], len: usize) -> bool {
        let missing = len.saturating_sub(self.have);
        if missing > 0
            && let Some(taken) = take(bytes, missing)
        {
            self.header[self.have..self.have + taken.len()].copy_from_slice(taken);
            self.have += taken.len();
        }
        self.have >= len
    }
}

/// Up to so many of the bytes; nothing where there are none.
#[inline]
fn take<'a>(bytes: &mut &'a [u8], len: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at(len.min(bytes.len()));
    *bytes = rest;
    (!taken.is_empty()).then_some(taken)
}
