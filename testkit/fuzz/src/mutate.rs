//! New input: from a seed text by the changes that parsers stumble over, or nothing but chance.

use random::SplitMix64;

use crate::Target;

/// Longest input, bytes.
const LONGEST: usize = 16 << 10;

/// Pieces that any text may choke on.
const WORDS: &[&str] = &[
    "",
    " ",
    "\n",
    "\0",
    "=",
    "[",
    "]",
    "{",
    "}",
    "\"",
    "'",
    "\"\"\"",
    ",",
    ":",
    "/",
    "%",
    "-",
    "+",
    ".",
    "#",
    "\\",
    "\r\n",
    "0",
    "1",
    "-1",
    "0x",
    "0.1",
    "1e999",
    "-0.0",
    "nan",
    "inf",
    "true",
    "null",
    "255",
    "256",
    "65536",
    "2147483648",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "340282366920938463463374607431768211456",
    "99999999999999999999.5",
    "ä",
    "\u{feff}",
    "🦀",
];

/// The input of one execution.
pub fn input(target: &Target, corpus: &[Vec<u8>], random: &mut SplitMix64) -> Vec<u8> {
    if corpus.is_empty() {
        // Mostly short: what goes wrong needs few choices, and short input is many more executions.
        let most = 8 << random.below(8);
        return (0..random.below(most)).map(|_| random.bits() as u8).collect();
    }
    let mut bytes = corpus[random.below(corpus.len() as u64) as usize].clone();
    for _ in 0..1 + random.below(5) {
        change(&mut bytes, target, corpus, random);
    }
    bytes.truncate(LONGEST);
    bytes
}

fn at(bytes: &[u8], random: &mut SplitMix64) -> usize {
    random.below(bytes.len() as u64 + 1) as usize
}

fn range(bytes: &[u8], random: &mut SplitMix64) -> std::ops::Range<usize> {
    let start = at(bytes, random);
    let most = (1 << random.below(8)).min(bytes.len() - start) as u64;
    start..start + random.below(most + 1) as usize
}

fn change(bytes: &mut Vec<u8>, target: &Target, corpus: &[Vec<u8>], random: &mut SplitMix64) {
    match random.below(9) {
        0 => {
            let place = at(bytes, random);
            if let Some(byte) = bytes.get_mut(place) {
                *byte ^= 1 << random.below(8);
            }
        }
        1 => drop(bytes.drain(range(bytes, random))),
        2 => {
            let piece = bytes[range(bytes, random)].repeat(1 + random.below(4) as usize);
            let place = at(bytes, random);
            bytes.splice(place..place, piece);
        }
        3 | 4 => {
            // A number or a name is replaced by another.
            let place = at(bytes, random);
            let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'.' || *byte == b'_';
            let end = place + bytes[place..].iter().take_while(|byte| is_word(byte)).count();
            let start = place - bytes[..place].iter().rev().take_while(|byte| is_word(byte)).count();
            bytes.splice(start..end, word(target, random));
        }
        5 => {
            let place = at(bytes, random);
            bytes.splice(place..place, word(target, random));
        }
        6 => {
            let other = &corpus[random.below(corpus.len() as u64) as usize];
            let piece = other[range(other, random)].to_vec();
            let place = range(bytes, random);
            bytes.splice(place, piece);
        }
        7 => {
            // Lines change places, come twice or go.
            let mut lines: Vec<Vec<u8>> = bytes.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
            if !lines.is_empty() {
                let line = lines[random.below(lines.len() as u64) as usize].clone();
                let place = random.below(lines.len() as u64) as usize;
                match random.below(3) {
                    0 => lines.insert(place, line),
                    1 => lines[place] = line,
                    _ => drop(lines.remove(place)),
                }
                *bytes = lines.concat();
            }
        }
        _ => {
            let place = at(bytes, random);
            let noise: Vec<u8> = (0..random.below(16)).map(|_| random.bits() as u8).collect();
            bytes.splice(place..place, noise);
        }
    }
}

fn word(target: &Target, random: &mut SplitMix64) -> Vec<u8> {
    let all = WORDS.len() + target.words.len();
    let at = random.below(all as u64) as usize;
    WORDS.get(at).unwrap_or_else(|| &target.words[at - WORDS.len()]).as_bytes().to_vec()
}
