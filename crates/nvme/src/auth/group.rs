//! Diffie-Hellman groups over finite fields, as TLS has them.
//!
//! Source: RFC 7919, appendix A: ffdhe2048 to ffdhe8192. Each prime is 2^b - 2^(b-64) + (floor(2^(b-130) e) + X) 2^64 - 1, and 2
//! generates the group.

use crypto_bigint::modular::{BoxedMontyForm, BoxedMontyParams};
use crypto_bigint::{BoxedUint, Odd};
use zeroize::Zeroizing;

use super::{Entropy, Failure};

/// floor(2^8062 e): shorter primes have a prefix of it.
const DIGITS: &str = "\
    adf85458a2bb4a9aafdc5620273d3cf1d8b9c583ce2d3695a9e13641146433fbcc939dce249b3ef97d2fe363630c75d8f681b202aec4617a\
    d3df1ed5d5fd65612433f51f5f066ed0856365553ded1af3b557135e7f57c935984f0c70e0e68b77e2a689daf3efe8721df158a136ade735\
    30acca4f483a797abc0ab182b324fb61d108a94bb2c8e3fbb96adab760d7f4681d4f42a3de394df4ae56ede76372bb190b07a7c8ee0a6d70\
    9e02fce1cdf7e2ecc03404cd28342f619172fe9ce98583ff8e4f1232eef28183c3fe3b1b4c6fad733bb5fcbc2ec22005c58ef1837d1683b2\
    c6f34a26c1b2effa886b4238611fcfdcde355b3b6519035bbc34f4def99c023861b46fc9d6e6c9077ad91d2691f7f7ee598cb0fac186d91c\
    aefe130985139270b4130c93bc437944f4fd4452e2d74dd364f2e21e71f54bff5cae82ab9c9df69ee86d2bc522363a0dabc521979b0deada\
    1dbf9a42d5c4484e0abcd06bfa53ddef3c1b20ee3fd59d7c25e41d2b669e1ef16e6f52c3164df4fb7930e9e4e58857b6ac7d5f42d69f6d18\
    7763cf1d5503400487f55ba57e31cc7a7135c886efb4318aed6a1e012d9e6832a907600a918130c46dc778f971ad0038092999a333cb8b7a\
    1a1db93d7140003c2a4ecea9f98d0acc0a8291cdcec97dcf8ec9b55a7f88a46b4db5a851f44182e1c68a007e5e0dd9020bfd64b645036c7a\
    4e677d2c38532a3a23ba4442caf53ea63bb454329b7624c8917bdd64b1c0fd4cb38e8c334c701c3acdad0657fccfec719b1f5c3e4e46041f\
    388147fb4cfdb477a52471f7a9a96910b855322edb6340d8a00ef092350511e30abec1fff9e3a26e7fb29f8c183023c3587e38da0077d9b4\
    763e4e4b94b2bbc194c6651e77caf992eeaac0232a281bf6b3a739c1226116820ae8db5847a67cbef9c9091b462d538cd72b03746ae77f5e\
    62292c311562a846505dc82db854338ae49f5235c95b91178ccf2dd5cacef403ec9d1810c6272b045b3b71f9dc6b80d63fdd4a8e9adb1e69\
    62a69526d43161c1a41d570d7938dad4a40e329ccff46aaa36ad004cf600c8381e425a31d951ae64fdb23fcec9509d43687feb69edd1cc5e\
    0b8cc3bdf64b10ef86b63142a3ab8829555b2f747c932665cb2c0f1cc01bd70229388839d2af05e454504ac78b7582822846c0ba35c35f5c\
    59160cc046fd8251541fc68c9c86b022bb7099876a460e7451a8a93109703fee1c217e6c3826e52c51aa691e0e423cfc99e9e31650c1217b\
    624816cdad9a95f9d5b8019488d9c0a0a1fe3075a577e23183f81d4a3f2fa4571efc8ce0ba8a4fe8b6855dfe72b0a66eded2fbabfbe58a30\
    fafabe1c5d71a87e2f741ef8c1fe86fea6bbfde530677f0d97d11d49f7a8443d0822e506a9f4614e011e2a94838ff88cd68c8bb7c51eef6d";
/// Bits of a secret exponent: twice the strength of the largest group, and some (RFC 7919, appendix A.5: 400 at least).
const EXPONENT_BITS: u32 = 512;
/// The generator of all groups.
const GENERATOR: u8 = 2;

/// A Diffie-Hellman group, or none (8.13.5.2, group identifiers).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Group {
    /// None: challenges are not augmented.
    Null = 0,
    /// 2,048 bits.
    Ffdhe2048 = 1,
    /// 3,072 bits.
    Ffdhe3072 = 2,
    /// 4,096 bits.
    Ffdhe4096 = 3,
    /// 6,144 bits.
    Ffdhe6144 = 4,
    /// 8,192 bits.
    Ffdhe8192 = 5,
}

impl Group {
    /// All there are: first the one that is strong for decades, then those that cost less or more, then none.
    pub const BY_PREFERENCE: [Group; 6] =
        [Group::Ffdhe3072, Group::Ffdhe2048, Group::Ffdhe4096, Group::Ffdhe6144, Group::Ffdhe8192, Group::Null];

    /// By its number.
    pub fn of(number: u8) -> Option<Group> {
        Group::BY_PREFERENCE.into_iter().find(|group| *group as u8 == number)
    }

    /// Bytes of its values; 0 without a group.
    pub fn bytes(self) -> usize {
        match self {
            Group::Null => 0,
            Group::Ffdhe2048 => 2048 / 8,
            Group::Ffdhe3072 => 3072 / 8,
            Group::Ffdhe4096 => 4096 / 8,
            Group::Ffdhe6144 => 6144 / 8,
            Group::Ffdhe8192 => 8192 / 8,
        }
    }

    /// The smallest number that makes a safe prime (X of the formula).
    fn offset(self) -> u64 {
        match self {
            Group::Null => 0,
            Group::Ffdhe2048 => 560_316,
            Group::Ffdhe3072 => 2_625_351,
            Group::Ffdhe4096 => 5_736_041,
            Group::Ffdhe6144 => 15_705_020,
            Group::Ffdhe8192 => 10_965_728,
        }
    }

    /// The prime, big-endian.
    pub(super) fn prime(self) -> Vec<u8> {
        let mut prime = vec![0xff; self.bytes()];
        let middle = 8..self.bytes().saturating_sub(8);
        if let Some(bytes) = prime.get_mut(middle) {
            let digits = DIGITS.as_bytes().chunks_exact(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1]));
            bytes.iter_mut().zip(digits).for_each(|(byte, digit)| *byte = digit);
            // Subtracting 1 from the whole borrows 1 from here, and leaves ones below.
            let mut carry = self.offset().saturating_sub(1);
            for byte in bytes.iter_mut().rev() {
                carry += u64::from(*byte);
                *byte = carry as u8;
                carry >>= 8;
            }
        }
        prime
    }

    fn bits(self) -> u32 {
        8 * self.bytes() as u32
    }

    /// `base` to the power of a secret exponent, in time that does not depend on the exponent.
    fn power(self, base: BoxedUint, exponent: &BoxedUint) -> Option<Vec<u8>> {
        let prime = BoxedUint::from_be_slice(&self.prime(), self.bits()).ok()?;
        let parameters = BoxedMontyParams::new_vartime(Odd::new(prime).into_option()?);
        let power = BoxedMontyForm::new(base, &parameters).pow_bounded_exp(exponent, EXPONENT_BITS);
        Some(power.retrieve().to_be_bytes().to_vec())
    }
}

fn digit(letter: u8) -> u8 {
    match letter {
        b'0'..=b'9' => letter - b'0',
        _ => letter - b'a' + 10,
    }
}

/// One side's part of an agreement.
pub(super) struct Exchange {
    group: Group,
    exponent: Zeroizing<BoxedUint>,
    /// The value for the other side; empty without a group.
    pub(super) public: Vec<u8>,
}

impl Exchange {
    /// A new exponent, and the value of it.
    pub(super) fn new(group: Group, entropy: &mut dyn Entropy) -> Result<Exchange, Failure> {
        let mut bytes = Zeroizing::new([0; EXPONENT_BITS as usize / 8]);
        if group == Group::Null {
            return Ok(Exchange { group, exponent: Zeroizing::new(BoxedUint::zero()), public: Vec::new() });
        }
        entropy.fill(&mut bytes[..])?;
        let exponent = BoxedUint::from_be_slice(&bytes[..], EXPONENT_BITS).map_err(|_| Failure::Failed)?;
        let exponent = Zeroizing::new(exponent);
        let base = BoxedUint::from_be_slice(&[GENERATOR], group.bits()).map_err(|_| Failure::Failed)?;
        let public = group.power(base, &exponent).ok_or(Failure::Failed)?;
        Ok(Exchange { group, exponent, public })
    }

    /// What both sides agree on, from the value of the other; nothing without a group.
    ///
    /// # Errors
    /// The value is none of the group's, or one that would give the secret away: 0, 1, or the prime less 1.
    pub(super) fn agree(&self, other: &[u8]) -> Result<Option<Zeroizing<Vec<u8>>>, Failure> {
        if other.len() != self.group.bytes() {
            return Err(Failure::IncorrectPayload);
        }
        if self.group == Group::Null {
            return Ok(None);
        }
        let unusable = Failure::GroupUnusable;
        let mut last = self.group.prime();
        // The prime is odd: this is the prime less 1.
        last.last_mut().map(|byte| *byte -= 1).ok_or(unusable)?;
        let is_small = other.iter().rev().skip(1).all(|byte| *byte == 0) && other.last().is_some_and(|byte| *byte < 2);
        if is_small || other >= &last[..] {
            return Err(unusable);
        }
        let base = BoxedUint::from_be_slice(other, self.group.bits()).map_err(|_| unusable)?;
        Ok(Some(Zeroizing::new(self.group.power(base, &self.exponent).ok_or(unusable)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn hash(bytes: &[u8]) -> String {
        hex(ring::digest::digest(&ring::digest::SHA256, bytes).as_ref())
    }

    struct Constant(u8);

    impl Entropy for Constant {
        fn fill(&mut self, bytes: &mut [u8]) -> Result<(), Failure> {
            bytes.fill(self.0);
            Ok(())
        }
    }

    /// Computed by Python's integers; the primes are the ones of OpenSSL.
    #[test]
    fn known_answers_of_every_group() {
        let known = [
            (
                Group::Ffdhe2048,
                "9cd3b7f336872f46c09428d1bbc19877a4d440512cda8d1c1cf0cd6e33698966",
                "e9e21a424097073148c9248310b99206574755a4778e801b7b82feb1e7d51269",
                "cd1e876da2686813dd5ed662229427fcc05862469b0c73532f79872ba486bd74",
            ),
            (
                Group::Ffdhe3072,
                "0eaf67db3a839156d5013494a5318a772b5697d270d721f37f092efc69ea5a17",
                "5af599453305d04968ca0d1465f7fb3649c51064ee7bac4b4cfd456d8eb7e7af",
                "62352311f4ed24762f9e2c632e1f1360c3aaccce307767bfcda18aa90e913295",
            ),
            (
                Group::Ffdhe4096,
                "4648414224ac881b3d0dc59b466f96d06a558278776807797ecf1f66ff397b3e",
                "1a76c6504eaf22a6d8c3188beb29905125e317d3c0e1516f4b5c4cf6fd35b496",
                "944d03957fd03b89acbe80029921d93dc34262b88e63cc28d890148d7449f1dc",
            ),
            (
                Group::Ffdhe6144,
                "227ac9066b3ddd9e193670cda2388fa884f65ba0cf98b742d1fe77a6687c79c7",
                "e9963634c373dcd7f28e7a7aa3bfcf5ce22ad3e2350caef61fc75d56e6e7cd22",
                "7c01555bdcc7afa45446e1b55136ec3ed4ef038a7fddb9ed917577be7be4a1f1",
            ),
            (
                Group::Ffdhe8192,
                "770b14efaf6f049929c523113b3fa99a8d11dab1b18af3609590122075d19833",
                "c2097061e743e45829349b6e7a03ef58563cc14ca47caf24b04d94aecbe97a89",
                "0176d8855fd945abcf4fadcd52838758a3060f95b707b63393c6b3d9ab5fead0",
            ),
        ];
        for (group, prime, public, shared) in known {
            assert_eq!(hash(&group.prime()), prime, "{group:?}");
            let ours = Exchange::new(group, &mut Constant(0x11)).expect("an exponent");
            let theirs = Exchange::new(group, &mut Constant(0x22)).expect("an exponent");
            assert_eq!(hash(&ours.public), public, "{group:?}");
            for agreed in [ours.agree(&theirs.public), theirs.agree(&ours.public)] {
                assert_eq!(hash(&agreed.expect("a value of the group").expect("a group")), shared, "{group:?}");
            }
        }
    }

    #[test]
    fn values_that_give_the_secret_away_are_refused() {
        let group = Group::Ffdhe2048;
        let exchange = Exchange::new(group, &mut Constant(0x11)).expect("an exponent");
        let number = |last: u8| [vec![0; group.bytes() - 1], vec![last]].concat();
        let prime = group.prime();
        let (mut below, mut second) = (prime.clone(), prime.clone());
        below[group.bytes() - 1] -= 1;
        second[group.bytes() - 1] -= 2;
        for wrong in [number(0), number(1), below, prime, vec![0xff; group.bytes()]] {
            assert_eq!(exchange.agree(&wrong).err(), Some(Failure::GroupUnusable));
        }
        assert!(exchange.agree(&number(2)).is_ok() && exchange.agree(&second).is_ok());
        assert_eq!(exchange.agree(&number(2)[1..]).err(), Some(Failure::IncorrectPayload));
        let none = Exchange::new(Group::Null, &mut Constant(0)).expect("nothing to do");
        assert!(matches!(none.agree(&[]), Ok(None)) && none.agree(&[1]).is_err());
    }
}
