//! Authentication in memory: nobody gets in without the secret, whatever is said in whatever order.

use std::sync::OnceLock;

use nvme::auth::{Entropy, Failure, Group, Hash, Keys, MESSAGE_BYTES, Names, Policy, Requester, Responder, Secret};

use super::garble;
use crate::choices::Choices;
use crate::targets::{Target, choices};

pub const TARGET: Target = Target {
    name: "nvme-auth",
    about: "DH-HMAC-CHAP, both sides: messages garbled, out of order, of another transaction, without the secret",
    weight: 100,
    corpus: choices,
    words: &[],
    run,
};

struct Counter(u8);

impl Entropy for Counter {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), Failure> {
        self.0 = self.0.wrapping_add(1);
        bytes.fill(self.0);
        Ok(())
    }
}

fn run(input: &[u8]) {
    static SECRETS: OnceLock<[Secret; 2]> = OnceLock::new();
    let [right, wrong] = SECRETS.get_or_init(|| {
        ["AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR", "ZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXp7fH1+f4CBgoOeXryU"]
            .map(|key| format!("DHHC-1:00:{key}:").parse().expect("a secret"))
    });
    let choices = &mut Choices::new(input);
    // Any text is a secret, or is refused with a reason.
    let _ = String::from_utf8_lossy(input).parse::<Secret>();
    let _ = format!("DHHC-1:0{}:{}:", choices.below(5), String::from_utf8_lossy(choices.raw(80))).parse::<Secret>();
    let names = Names { host: "nqn.h".into(), subsystem: "nqn.s".into() };
    let groups = if choices.one_in(64) { vec![Group::Ffdhe2048] } else { vec![Group::Null] };
    let policy = Policy { hashes: Hash::ALL.to_vec(), groups };
    let knows = choices.one_in(4);
    let keys = |host: &Secret, both: bool| Keys { host: host.clone(), controller: both.then(|| right.clone()) };
    let both = choices.one_in(2);
    let ours = if knows { right } else { wrong };
    let mut host = Requester::new(keys(ours, both), names.clone(), policy.clone(), Box::new(Counter(0)));
    let mut target = Responder::new(keys(right, both), names, policy, Box::new(Counter(100)));
    let (mut sound, mut said) = (true, vec![host.negotiate()]);
    for _ in 0..6 {
        let again = choices.one_in(8);
        let at = if again { choices.below(said.len()) } else { said.len() - 1 };
        let mut message = said[at].clone();
        sound &= !again & !garble(choices, &mut message, 6);
        target.send(&message);
        let max = if choices.one_in(16) { choices.below(64) } else { MESSAGE_BYTES };
        let Ok(mut answer) = target.receive(max) else {
            sound = false;
            continue;
        };
        assert!(answer.len() <= max);
        assert!(!target.is_done() || knows, "in without the secret");
        sound &= !garble(choices, &mut answer, 8);
        let next = match said.len() {
            1 => host.challenged(&answer),
            _ => host.answered(&answer).map(Option::unwrap_or_default),
        };
        said.push(next.unwrap_or_else(|failure| host.give_up(failure)));
    }
    assert!(target.is_done() || !knows || !sound, "not in with the secret");
}
