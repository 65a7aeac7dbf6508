//! The superblock: fields, lists and lengths under a right checksum, in either copy or both.

use device::{Device, MediaFormat};
use media::Geometry;
use uuid::Uuid;

use super::flat::{Flat, GEOMETRY, LABEL, seal_label, use_up};
use super::{Target, choices};
use crate::choices::Choices;

pub const TARGET: Target = Target {
    name: "superblock",
    about: "the superblock: hostile fields, lists and lengths under a right checksum, then an attach",
    weight: 60,
    corpus: choices,
    words: &[],
    run,
};

/// Where fields stand, and how wide they are: docs/format.md.
const FIELDS: &[(usize, usize)] = &[
    (0, 8),
    (8, 4),
    (12, 4),
    (16, 8),
    (24, 8),
    (40, 4),
    (44, 4),
    (48, 4),
    (52, 4),
    (56, 4),
    (60, 4),
    (64, 4),
    (68, 4),
    (72, 4),
    (76, 4),
    (80, 8),
    (88, 8),
    (96, 8),
    (104, 8),
    (112, 1),
    (113, 1),
    (114, 4),
    (120, 1),
    (121, 8),
    (184, 1),
    (185, 8),
    (248, 8),
    (256, 8),
    (264, 8),
    (272, 4),
    (276, 4),
    (280, 8),
    (288, 8),
    (296, 8),
    (336, 8),
    (344, 8),
    (352, 8),
    (360, 4),
    (364, 4),
    (368, 4),
    (372, 4),
    (376, 4),
];

/// Changes one field in both copies, or in one where the copies may differ.
pub fn change(labels: &mut [Vec<u8>; 2], choices: &mut Choices) {
    let (at, width) = choices.pick(FIELDS);
    let mut bytes = [0; 8];
    bytes[..width].copy_from_slice(&labels[0][at..at + width]);
    let value = choices.hostile(u64::from_le_bytes(bytes)).to_le_bytes();
    // The medium has one shape, whichever copy counts.
    let both = GEOMETRY.contains(&at) || choices.below(2) == 0;
    let first = choices.below(2);
    for (copy, label) in labels.iter_mut().enumerate() {
        if both || copy == first {
            label[at..at + width].copy_from_slice(&value[..width]);
            if !choices.one_in(32) {
                seal_label(label);
            }
        }
    }
}

fn run(input: &[u8]) {
    let choices = &mut Choices::new(input);
    let geometry = Geometry {
        dies: 1,
        parity: 0,
        blocks: 24,
        pages_per_block: 2,
        slots_per_page: 8,
        sector_bytes: 512,
        trailer_bytes: ftl::TRAILER_BYTES,
        unit_bytes: 512,
    };
    let format = MediaFormat {
        sectors: 64,
        max_request_bytes: 2048,
        checkpoint_interval: 64,
        policy: ftl::Policy::default(),
        uuid: Uuid::from_u128(7),
        key: None,
    };
    let flat = Flat::formatted(geometry, &format);
    {
        let labels = &mut flat.0.borrow_mut().labels;
        if choices.one_in(4) {
            // A list longer than the one that stands there, with the length that goes with it.
            let count = choices.below(100) as u32;
            for label in labels.iter_mut() {
                let rest = label.split_off(364);
                label[360..364].copy_from_slice(&count.to_le_bytes());
                (0..count).for_each(|n| label.extend((choices.below(30) as u32 ^ n).to_le_bytes()));
                label.extend(rest);
                label.resize(LABEL, 0);
                label[12..16].copy_from_slice(&(372 + 4 * count).to_le_bytes());
                seal_label(label);
            }
        }
        for _ in 0..1 + choices.below(4) {
            change(labels, choices);
        }
    }
    if let Ok(device) = Device::on_media(Box::new(flat.media()), choices.one_in(2)) {
        use_up(device);
    }
}
