use super::message::Message;
use super::*;

const HOST: &str = "nqn.2014-08.org.nvmexpress:uuid:8b6a4d0e-0c1f-4d5e-9a57-b1f3f3b8a001";
const SUBSYSTEM: &str = "nqn.2026-11.org.openvsl:uuid:3f0e4a55-9d5c-4c53-8a30-0d0c6f1f2b11";
const TRANSACTION: u16 = 0x0506;

fn names() -> Names {
    Names { host: HOST.into(), subsystem: SUBSYSTEM.into() }
}

fn bytes(hex: &str) -> Vec<u8> {
    hex.as_bytes()
        .chunks_exact(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).expect("text"), 16).expect("a digit"))
        .collect()
}

fn keys(host: &str, controller: Option<&str>) -> Keys {
    let secret = |text: &str| text.parse().expect("a secret");
    Keys { host: secret(host), controller: controller.map(secret) }
}

/// Bytes that are all the same; other ones with each call.
#[derive(Clone)]
struct Constant(u8);

impl Entropy for Constant {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), Failure> {
        bytes.fill(self.0);
        self.0 = self.0.wrapping_add(1);
        Ok(())
    }
}

struct Known {
    hash: Hash,
    group: Group,
    host: &'static str,
    controller: &'static str,
    host_proof: &'static str,
    controller_proof: &'static str,
}

/// Made by a script of Python's `hmac` and `hashlib`: challenges of c1h (numbered 01020304h) and c2h (0a0b0c0dh), exponents of 11h
/// (the controller's) and 22h.
const KNOWN: &[Known] = &[
    Known {
        hash: Hash::Sha256,
        group: Group::Null,
        host: "DHHC-1:00:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:",
        controller: "DHHC-1:00:ZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXp7fH1+f4CBgoOeXryU:",
        host_proof: "db0bf831000a5769c4896cb7fd2b060edfc5a5736d14c9d9cf80b3458b895116",
        controller_proof: "25b4fb142f81a1f110b0136dabe6c0e78356d9347364eb2d0aafebdd1c13c326",
    },
    Known {
        hash: Hash::Sha256,
        group: Group::Ffdhe2048,
        host: "DHHC-1:00:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:",
        controller: "DHHC-1:00:ZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXp7fH1+f4CBgoOeXryU:",
        host_proof: "912264f772e283ffcd6948e44002fb5f97320530de6ecce6687888e21bb75a73",
        controller_proof: "895bba238bcc82f582d2c0379afef84279018292057fb0eabbd80a079417d583",
    },
    Known {
        hash: Hash::Sha256,
        group: Group::Null,
        host: "DHHC-1:01:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:",
        controller: "DHHC-1:01:ZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXp7fH1+f4CBgoOeXryU:",
        host_proof: "f45222e981684b6fbf6e4b35633735f4c326471e089ddad8a5285f722fcee87b",
        controller_proof: "3dc4a82107f589508017d8638e50e0e5353b8e7d90cd4c602572329393538cf2",
    },
    Known {
        hash: Hash::Sha256,
        group: Group::Ffdhe2048,
        host: "DHHC-1:01:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:",
        controller: "DHHC-1:01:ZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXp7fH1+f4CBgoOeXryU:",
        host_proof: "cf06cf48f861c8f60cbc22c5c18094267ed5ddb91fefc351162d5bc4e8e7e489",
        controller_proof: "d3bc634f858dbcbc2a54ebb1cfdfde630368d9f967cab446af20cdb7ce274fde",
    },
    Known {
        hash: Hash::Sha384,
        group: Group::Null,
        host: "DHHC-1:00:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vcSEgBQ==:",
        controller: "DHHC-1:00:ZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXp7fH1+f4CBgoOEhYaHiImKi4yNjo+QkZKTvGwQfg==:",
        host_proof: "103bdb6c96c17b7e124f29f3da6b857648e8f3f15c462682598e4582292c19def1e1ac4301207eeb62c175f93454d30f",
        controller_proof: "33a7a9247dea89257b5f4e7f4f691d263b96be7b63c780d6f794598b91200a66a49966087cdb459c1c2c0e2afe8159dd",
    },
    Known {
        hash: Hash::Sha384,
        group: Group::Ffdhe2048,
        host: "DHHC-1:00:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vcSEgBQ==:",
        controller: "DHHC-1:00:ZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXp7fH1+f4CBgoOEhYaHiImKi4yNjo+QkZKTvGwQfg==:",
        host_proof: "85578679e8b220b91aa37a27783c8d0f82f5ac283679e4e5e94863019969623459999c6ea1f68c6fcb443e6dac9c8ba6",
        controller_proof: "5ee6edb2009f37b84a09ebc7f36c6b74e1d2330faf5ea75ab9a16cdb18fa57dc3217b88cfcdbf5f77b7c612abd7636f8",
    },
    Known {
        hash: Hash::Sha384,
        group: Group::Null,
        host: "DHHC-1:02:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vcSEgBQ==:",
        controller: "DHHC-1:02:ZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXp7fH1+f4CBgoOEhYaHiImKi4yNjo+QkZKTvGwQfg==:",
        host_proof: "1e1b6ecb2ac17a6a95993aa257623e8bb952aac52b1b511a455ae141825561c7abb1707a8c12c4ff6d87b0e1b62ccbb7",
        controller_proof: "11d75183f85bf3c18d36389b6f0929a52c30462ca7f9f4a900d4d63529e642c451262dbf7d1e3ba13eaac8485541a769",
    },
    Known {
        hash: Hash::Sha384,
        group: Group::Ffdhe2048,
        host: "DHHC-1:02:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vcSEgBQ==:",
        controller: "DHHC-1:02:ZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXp7fH1+f4CBgoOEhYaHiImKi4yNjo+QkZKTvGwQfg==:",
        host_proof: "f84d22809d4a8a09da2f1224085d5b60122cdc035c886b74581012403cc24342ed13149cd5a0ac2da3dceeb41eaa51c8",
        controller_proof: "3b39b9e088aaf1530f6325266beaf8644d3956f6aaf28159f489491d26d09be6425ff55f2898f6f78fa4106690df5da4",
    },
    Known {
        hash: Hash::Sha512,
        group: Group::Null,
        host: "DHHC-1:00:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyMzQ1Njc4OTo7PD0+P4zODhA=:",
        controller: "DHHC-1:00:ZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXp7fH1+f4CBgoOEhYaHiImKi4yNjo+QkZKTlJWWl5iZmpucnZ6foKGio8FPdnY=:",
        host_proof: "b2a939413b4333f014d06d9b7070e1bb362bcc16e30a1e0682902e45327e65fd0f41137989a2efa61744670258580176923ec4e9d63b29a7a5d871822d768033",
        controller_proof: "ecde9ccb350c38dc02eec6bb3036a19d41d5ecaff5136db91ae4c22ed28a3610be391979d6c59fa01cdb53878f04793078395e080a5ffd792d0889b15c74a060",
    },
    Known {
        hash: Hash::Sha512,
        group: Group::Ffdhe2048,
        host: "DHHC-1:00:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyMzQ1Njc4OTo7PD0+P4zODhA=:",
        controller: "DHHC-1:00:ZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXp7fH1+f4CBgoOEhYaHiImKi4yNjo+QkZKTlJWWl5iZmpucnZ6foKGio8FPdnY=:",
        host_proof: "27387dfa15ec4c260690df999ab7d534ba0557d2b665be1646b1ee4871cbadcf17bf6faf0b83d425613180049eb19a031f32f2617ca909941630bf4695044d0c",
        controller_proof: "32770f2f5d8d55cf5d2b5e91fba04108969685962794a6a873c6f926bb4252414bf9f7b071d46476d0fb7434b255d727b5560887fdcaa2f84f4139f7ebe8f672",
    },
    Known {
        hash: Hash::Sha512,
        group: Group::Null,
        host: "DHHC-1:03:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyMzQ1Njc4OTo7PD0+P4zODhA=:",
        controller: "DHHC-1:03:ZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXp7fH1+f4CBgoOEhYaHiImKi4yNjo+QkZKTlJWWl5iZmpucnZ6foKGio8FPdnY=:",
        host_proof: "479619d12e77ffb798eca2e43e3c7d682a97cf9e1df6394b1f3e7284617b15be304b43f59c5d771dda52ad7bf25f9baf8448bf72b99cfc9c8b6e7dd48b04225e",
        controller_proof: "65a6c93ac673df24874347addc8d044bba44826870f820073c817ad199e069cd396fd911f24ef48227330daf0f77dd1d3e0f150039f3e31c9e18095a29003a42",
    },
    Known {
        hash: Hash::Sha512,
        group: Group::Ffdhe2048,
        host: "DHHC-1:03:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyMzQ1Njc4OTo7PD0+P4zODhA=:",
        controller: "DHHC-1:03:ZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXp7fH1+f4CBgoOEhYaHiImKi4yNjo+QkZKTlJWWl5iZmpucnZ6foKGio8FPdnY=:",
        host_proof: "5c0e3344e63b67714854ca1c253ee4b0b3571ffa7cddce0a27d61b3219cc05ad5b23da392f751222c337165f492e66a3d987fa3a329294c3483297fbaa31003b",
        controller_proof: "2d1de05da65031ff80ad420f1b3dbddfd41def084f5fa678400264022a20a651c17b605dd3b0705299d31d7520da79dd7231c4366cdf0b7a04bef7373e8f53df",
    },
];

/// A side whose exponents are all of one byte.
struct Exponents(u8);

impl Entropy for Exponents {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), Failure> {
        bytes.fill(self.0);
        Ok(())
    }
}

#[test]
fn known_proofs_of_every_hash() {
    for known in KNOWN {
        let Keys { host, controller } = keys(known.host, Some(known.controller));
        let (ours, theirs) = (
            group::Exchange::new(known.group, &mut Exponents(0x11)).expect("an exponent"),
            group::Exchange::new(known.group, &mut Exponents(0x22)).expect("an exponent"),
        );
        let shared = ours.agree(&theirs.public).expect("a value");
        let (names, len) = (names(), known.hash.bytes());
        let proof = |challenge, sequence, whose| proof::Proof {
            hash: known.hash,
            challenge,
            shared: shared.as_deref().map(Vec::as_slice),
            sequence,
            transaction: TRANSACTION,
            names: &names,
            whose,
        };
        let (first, second) = (vec![0xc1; len], vec![0xc2; len]);
        let first = proof(&first, 0x0102_0304, proof::Whose::Host);
        let second = proof(&second, 0x0a0b_0c0d, proof::Whose::Controller);
        assert_eq!(first.make(&host.key_for(HOST)), bytes(known.host_proof));
        assert_eq!(second.make(&controller.expect("a secret").key_for(SUBSYSTEM)), bytes(known.controller_proof));
        assert!(first.is_right(&host.key_for(HOST), &bytes(known.host_proof)));
        assert!(!first.is_right(&host.key_for(HOST), &bytes(known.controller_proof)));
    }
}

#[test]
fn secrets_are_read_and_written_as_nvme_cli_does() {
    for text in KNOWN.iter().flat_map(|known| [known.host, known.controller]).chain(GENERATED) {
        assert_eq!(text.parse::<Secret>().map(|secret| secret.to_string()).as_deref(), Ok(text));
    }
    let secret = Secret::generate(Some(Hash::Sha384), &mut SystemEntropy::default()).expect("random bytes");
    let text = secret.to_string();
    assert!(text.starts_with("DHHC-1:02:") && text.parse::<Secret>().is_ok(), "{text}");
    assert_eq!(format!("{secret:?}"), "Secret", "no log has it");
    let wrong = [
        ("", BadSecret::Form),
        ("DHHC-1:", BadSecret::Form),
        ("DHHC-1:00:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR", BadSecret::Form),
        ("DHHC-1:00:!!!:", BadSecret::Form),
        ("DHHC-1:04:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:", BadSecret::Transformation),
        ("DHHC-1:00:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh6KfiaR:", BadSecret::Checksum),
        ("DHHC-1:00:AAECAw==:", BadSecret::Length),
        ("DHHC-1:00:AA==:", BadSecret::Length),
    ];
    for (text, why) in wrong {
        assert_eq!(text.parse::<Secret>().err(), Some(why), "{text}");
    }
}

/// From `nvme gen-dhchap-key --hmac=0` to `--hmac=3` of nvme-cli 2.3.
const GENERATED: [&str; 4] = [
    "DHHC-1:00:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:",
    "DHHC-1:01:jRVi0px0rkMlhTcYN568MExDVMaZdb6HCY3EbpKviWrHzzt0:",
    "DHHC-1:02:/Gzo3iiih9y/Bo4gjrNPTrYw5PRzg7aoswSX9/w8pQVLe7D9r1BadJtDJw43cttfKmhoRA==:",
    "DHHC-1:03:YBaxiJMPm/7D0LV5vPrcAvOpT7MRdQug1CxlIyM0wQY91lWju2AzNKx7rojcCQAmVX7R0FAGfsUT6AONEVBv+91nAaQ=:",
];

const OTHER: &str = "DHHC-1:00:ZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXp7fH1+f4CBgoOeXryU:";
const SHA_256: &str = GENERATED[1];

fn sides(host: Keys, controller: Keys, policy: &Policy) -> (Requester, Responder) {
    (
        Requester::new(host, names(), policy.clone(), Box::new(Constant(1))),
        Responder::new(controller, names(), policy.clone(), Box::new(Constant(101))),
    )
}

/// Carries messages until one side has nothing more to say.
fn talk(host: &mut Requester, controller: &mut Responder) -> Result<(), Failure> {
    controller.send(&host.negotiate());
    let challenge = controller.receive(MESSAGE_BYTES).expect("room");
    controller.send(&host.challenged(&challenge)?);
    let answer = controller.receive(MESSAGE_BYTES).expect("room");
    match host.answered(&answer) {
        Ok(None) => Ok(()),
        Ok(Some(last)) => {
            assert!(!controller.is_done(), "the host has not said that it is satisfied");
            controller.send(&last);
            Ok(())
        }
        Err(failure) => {
            controller.send(&host.give_up(failure));
            Err(failure)
        }
    }
}

#[test]
fn a_host_with_the_secret_gets_in_with_every_hash_and_group() {
    for hash in Hash::ALL {
        for group in [Group::Null, Group::Ffdhe2048, Group::Ffdhe3072] {
            for controller in [None, Some(OTHER)] {
                let policy = Policy { hashes: vec![hash], groups: vec![group] };
                let keys = keys(SHA_256, controller);
                let (mut host, mut target) = sides(keys.clone(), keys, &policy);
                assert_eq!(talk(&mut host, &mut target), Ok(()));
                assert!(target.is_done() && target.failure().is_none());
            }
        }
    }
}

#[test]
fn a_host_with_another_secret_stays_out() {
    for group in [Group::Null, Group::Ffdhe2048] {
        let policy = Policy { groups: vec![group], ..Policy::default() };
        let (mut host, mut target) = sides(keys(OTHER, None), keys(SHA_256, None), &policy);
        assert_eq!(talk(&mut host, &mut target), Err(Failure::Failed));
        assert_eq!((target.is_done(), target.failure()), (false, Some(Failure::Failed)));
    }
}

#[test]
fn a_controller_with_another_secret_is_found_out() {
    let (mut host, mut target) = sides(keys(SHA_256, Some(OTHER)), keys(SHA_256, Some(SHA_256)), &Policy::default());
    assert_eq!(talk(&mut host, &mut target), Err(Failure::Failed));
    assert_eq!((target.is_done(), target.failure()), (false, Some(Failure::Failed)));
    // One that has none does not get away with silence.
    let (mut host, mut target) = sides(keys(SHA_256, Some(OTHER)), keys(SHA_256, None), &Policy::default());
    assert_eq!(talk(&mut host, &mut target), Err(Failure::Failed));
    assert!(!target.is_done());
    let success = Message::Success1 { transaction: 1, hash_len: 32, proof: None }.encode();
    let (mut host, mut target) = sides(keys(SHA_256, Some(OTHER)), keys(SHA_256, Some(OTHER)), &Policy::default());
    target.send(&host.negotiate());
    host.challenged(&target.receive(MESSAGE_BYTES).expect("room")).expect("a reply");
    assert_eq!(host.answered(&success), Err(Failure::Failed));
}

#[test]
fn a_secret_is_good_for_its_host_and_subsystem_only() {
    let policy = Policy { groups: vec![Group::Null], ..Policy::default() };
    for wrong in [
        Names { host: "nqn.2014-08.org.example:b".into(), ..names() },
        Names { subsystem: "nqn.2014-08.org.example:b".into(), ..names() },
    ] {
        let (mut host, _) = sides(keys(SHA_256, None), keys(SHA_256, None), &policy);
        let mut target = Responder::new(keys(SHA_256, None), wrong, policy.clone(), Box::new(Constant(9)));
        assert_eq!(talk(&mut host, &mut target), Err(Failure::Failed));
    }
}

#[test]
fn an_answer_that_was_listened_to_is_of_no_use_again() {
    let policy = Policy { groups: vec![Group::Null], ..Policy::default() };
    let (mut host, mut target) = sides(keys(SHA_256, None), keys(SHA_256, None), &policy);
    let hello = host.negotiate();
    target.send(&hello);
    let reply = host.challenged(&target.receive(MESSAGE_BYTES).expect("room")).expect("a reply");
    target.send(&reply);
    target.receive(MESSAGE_BYTES).expect("room");
    assert!(target.is_done());
    let mut again = Responder::new(keys(SHA_256, None), names(), policy, Box::new(Constant(55)));
    again.send(&hello);
    again.receive(MESSAGE_BYTES).expect("room");
    again.send(&reply);
    again.receive(MESSAGE_BYTES).expect("room");
    assert_eq!(again.failure(), Some(Failure::Failed));
}

#[test]
fn a_challenge_sent_back_is_not_answered() {
    let policy = Policy { groups: vec![Group::Null], ..Policy::default() };
    let (mut host, mut target) = sides(keys(SHA_256, Some(OTHER)), keys(SHA_256, Some(OTHER)), &policy);
    target.send(&host.negotiate());
    let challenge = target.receive(MESSAGE_BYTES).expect("room");
    let mut reply = host.challenged(&challenge).expect("a reply");
    reply[16 + 32..16 + 64].copy_from_slice(&challenge[16..16 + 32]);
    target.send(&reply);
    target.receive(MESSAGE_BYTES).expect("room");
    assert_eq!(target.failure(), Some(Failure::Failed));
}

#[test]
fn what_is_not_offered_in_common_fails_with_its_reason() {
    let small = |hashes: &[Hash], groups: &[Group]| Policy { hashes: hashes.to_vec(), groups: groups.to_vec() };
    let cases = [
        (small(&[Hash::Sha256], &[Group::Null]), small(&[Hash::Sha384], &[Group::Null]), Failure::HashUnusable),
        (small(&[Hash::Sha256], &[Group::Null]), small(&[Hash::Sha256], &[Group::Ffdhe2048]), Failure::GroupUnusable),
    ];
    for (host_policy, policy, why) in cases {
        let mut host = Requester::new(keys(SHA_256, None), names(), host_policy, Box::new(Constant(1)));
        let mut target = Responder::new(keys(SHA_256, None), names(), policy, Box::new(Constant(101)));
        assert_eq!(talk(&mut host, &mut target), Err(why));
        assert!(!target.is_done());
    }
    // A controller may not choose what the host did not offer.
    let (mut host, mut target) = sides(keys(SHA_256, None), keys(SHA_256, None), &Policy::default());
    target.send(&host.negotiate());
    let mut challenge = target.receive(MESSAGE_BYTES).expect("room");
    host = Requester::new(keys(SHA_256, None), names(), small(&[Hash::Sha256], &[Group::Null]), Box::new(Constant(1)));
    host.negotiate();
    assert_eq!(host.challenged(&challenge), Err(Failure::GroupUnusable));
    challenge[6] = 31;
    assert_eq!(host.challenged(&challenge), Err(Failure::HashUnusable));
}

#[test]
fn messages_out_of_order_let_nobody_in() {
    let keys = || keys(SHA_256, Some(OTHER));
    let policy = Policy { groups: vec![Group::Null], ..Policy::default() };
    let (mut host, mut target) = sides(keys(), keys(), &policy);
    let hello = host.negotiate();
    target.send(&hello);
    let reply = host.challenged(&target.receive(MESSAGE_BYTES).expect("room")).expect("a reply");
    let done = Message::Success2 { transaction: 1 }.encode();
    let orders: [&[&[u8]]; 7] =
        [&[&done], &[&reply], &[&hello, &done], &[&hello, &hello], &[&hello, &[]], &[&[]], &[&[0; 72]]];
    for order in orders {
        let (_, mut target) = sides(keys(), keys(), &policy);
        for message in order {
            target.send(message);
            let answer = target.receive(MESSAGE_BYTES).expect("room");
            assert!(!answer.is_empty() && !target.is_done());
        }
        assert!(target.failure().is_some());
        // From here on nothing helps.
        for message in [&hello, &reply, &done] {
            target.send(message);
            target.receive(MESSAGE_BYTES).expect("room");
            assert!(!target.is_done());
        }
    }
    // A receive before anything was sent, and one that has no room.
    let (_, mut target) = sides(keys(), keys(), &policy);
    target.send(&hello);
    assert_eq!(target.receive(16), Err(TooShort));
    assert!(target.receive(MESSAGE_BYTES).is_ok_and(|message| message.len() == 48), "it stays to be received");
    target.receive(MESSAGE_BYTES).expect("room");
    assert_eq!(target.failure(), Some(Failure::IncorrectMessage), "the challenge was received already");
}

#[test]
fn a_negotiation_as_the_specification_draws_it() {
    let (mut host, _) = sides(keys(SHA_256, None), keys(SHA_256, None), &Policy::default());
    let hello = host.negotiate();
    assert_eq!(hello.len(), 72);
    assert_eq!(hello[..15], [0, 0, 0, 0, 1, 0, 0, 1, 1, 0, 3, 6, 1, 2, 3]);
    assert_eq!(hello[42..48], [2, 1, 3, 4, 5, 0]);
    let mut concatenated = hello;
    concatenated[6] = 1;
    assert_eq!(Message::decode(&concatenated), Err(Failure::ConcatenationMismatch));
    concatenated[6] = 0;
    concatenated[10] = 31;
    assert_eq!(Message::decode(&concatenated), Err(Failure::IncorrectPayload));
    concatenated[8] = 2;
    assert_eq!(Message::decode(&concatenated), Err(Failure::ProtocolUnusable));
    assert_eq!(Message::decode(&concatenated[..71]), Err(Failure::IncorrectPayload));
}

#[test]
fn messages_come_out_as_they_went_in_and_cut_ones_do_not() {
    let transaction = 7;
    let messages = [
        Message::Challenge {
            transaction,
            hash: Hash::Sha384,
            group: Group::Ffdhe2048,
            sequence: 9,
            challenge: vec![1; 48],
            public: vec![2; 256],
        },
        Message::Reply { transaction, proof: vec![3; 48], challenge: Some((5, vec![4; 48])), public: vec![6; 256] },
        Message::Reply { transaction, proof: vec![3; 32], challenge: None, public: Vec::new() },
        Message::Success1 { transaction, hash_len: 48, proof: Some(vec![7; 48]) },
        Message::Success1 { transaction, hash_len: 48, proof: None },
        Message::Success2 { transaction },
        Message::Failure1 { transaction, failure: Failure::HashUnusable },
        Message::Failure2 { transaction, failure: Failure::Failed },
    ];
    for message in messages {
        let bytes = message.encode();
        assert!(bytes.len() <= MESSAGE_BYTES);
        assert_eq!(Message::decode(&bytes), Ok(message.clone()));
        for len in 0..bytes.len() {
            assert!(Message::decode(&bytes[..len]).is_err(), "{message:?} cut to {len}");
        }
    }
}
