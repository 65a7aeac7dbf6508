//! Input read as a series of choices: what is built from them is almost valid, whatever the bytes are.

/// Numbers at which lengths, offsets and counters go wrong.
const EDGES: &[u64] = &[
    0,
    1,
    2,
    3,
    7,
    8,
    511,
    512,
    513,
    4095,
    4096,
    4097,
    0x7fff,
    0x8000,
    0xffff,
    0x1_0000,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_fffe,
    0xffff_ffff,
    0x1_0000_0000,
    0xff_ffff_ffff,
    0xffff_ffff_ffff,
    0x1_0000_0000_0000,
    0x7fff_ffff_ffff_ffff,
    0x8000_0000_0000_0000,
    0xffff_ffff_ffff_fe00,
    0xffff_ffff_ffff_fffe,
    0xffff_ffff_ffff_ffff,
];

/// What is left of the input. Past its end every choice is the first one, and [`Choices::is_over`] tells.
pub struct Choices<'a>(&'a [u8]);

impl<'a> Choices<'a> {
    pub fn new(input: &'a [u8]) -> Choices<'a> {
        Choices(input)
    }

    pub fn is_over(&self) -> bool {
        self.0.is_empty()
    }

    pub fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((first, rest)) => {
                self.0 = rest;
                *first
            }
            None => 0,
        }
    }

    /// A number of `count` bytes.
    fn number(&mut self, count: u32) -> u64 {
        (0..count).fold(0, |number, _| number << 8 | u64::from(self.byte()))
    }

    pub fn u16(&mut self) -> u16 {
        self.number(2) as u16
    }

    pub fn u32(&mut self) -> u32 {
        self.number(4) as u32
    }

    pub fn u64(&mut self) -> u64 {
        self.number(8)
    }

    /// A number below `limit`, which is at least 1.
    pub fn below(&mut self, limit: usize) -> usize {
        let number = if limit <= 256 { self.number(1) } else { self.number(4) };
        number as usize % limit
    }

    /// True once in `n` times, `n` up to 256. False past the end.
    pub fn one_in(&mut self, n: usize) -> bool {
        !self.is_over() && self.below(n) == n - 1
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// Bytes as they are, up to `most`.
    pub fn raw(&mut self, most: usize) -> &'a [u8] {
        let count = self.below(most + 1).min(self.0.len());
        let (taken, rest) = self.0.split_at(count);
        self.0 = rest;
        taken
    }

    /// A number where numbers go wrong, one beside what stood there, or any.
    pub fn hostile(&mut self, was: u64) -> u64 {
        match self.below(6) {
            0 => was.wrapping_add(1),
            1 => was.wrapping_sub(1),
            2 => was ^ 1 << self.below(64),
            3 => self.u64(),
            _ => self.pick(EDGES),
        }
    }
}
