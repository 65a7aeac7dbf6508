//! A used medium with hostile slots: LEB headers, log entries, trim records and checkpoint pieces under right checksums.

use std::cell::RefCell;
use std::rc::Rc;

use device::{Device, Io, MediaFormat};
use ftl::TRAILER_BYTES;
use media::Geometry;
use uuid::Uuid;

use super::flat::{Bytes, Flat, ask, use_up};
use super::{Target, choices, labels};
use crate::choices::Choices;

pub const TARGET: Target = Target {
    name: "medium",
    about: "attach: hostile LEB headers, log entries, trims, checkpoint pieces and superblocks, checksums right",
    weight: 40,
    corpus: choices,
    words: &[],
    run,
};

const SECTOR: usize = 512;
const SLOT: usize = SECTOR + TRAILER_BYTES as usize;
const SLOTS_PER_PAGE: usize = 8;
const PAGES_PER_BLOCK: usize = 4;
const BLOCKS: usize = 28;
const UUID: Uuid = Uuid::from_u128(7);
const SECTORS: u64 = 300;

const GEOMETRY: Geometry = Geometry {
    dies: 1,
    parity: 0,
    blocks: BLOCKS as u32,
    pages_per_block: PAGES_PER_BLOCK as u32,
    slots_per_page: SLOTS_PER_PAGE as u32,
    sector_bytes: SECTOR as u32,
    trailer_bytes: ftl::TRAILER_BYTES,
    unit_bytes: 512,
};

/// A medium as a device left it, and its slots that pass their check, by kind.
struct Image {
    bytes: Bytes,
    slots: [Vec<usize>; 5],
}

/// Where a slot begins in the blocks' bytes.
fn place(slot: usize) -> usize {
    slot / SLOTS_PER_PAGE * GEOMETRY.page_bytes() as usize + slot % SLOTS_PER_PAGE * SLOT
}

fn sum(slot: &[u8]) -> u32 {
    crc_fast::crc32_iscsi(&slot[..SLOT - 4]) ^ crc_fast::crc32_iscsi(UUID.as_bytes())
}

/// Uses a new device for a while; then it ends cleanly, or just stops.
fn image(rounds: u64, trims: bool, clean: bool) -> Image {
    let format = MediaFormat {
        sectors: SECTORS,
        max_request_bytes: 8 * SECTOR as u32,
        checkpoint_interval: 96,
        policy: ftl::Policy::default(),
        uuid: UUID,
        key: None,
    };
    let flat = Flat::formatted(GEOMETRY, &format);
    let mut device = Device::on_media(Box::new(flat.media()), false).expect("a fresh format");
    for round in 0..rounds {
        let (lba, count) = (round * 37 % (SECTORS - 8), 1 + round as usize % 7);
        ask(&mut device, Io::Write { lba, data: &vec![round as u8; count * SECTOR], fua: round % 11 == 0 });
        if trims && round % 5 == 0 {
            ask(&mut device, Io::Trim { lba: lba / 2, count: 1 + round % 3, fua: false });
        }
        if round % 17 == 0 {
            ask(&mut device, Io::Flush);
        }
    }
    if clean {
        device.detach().expect("a medium that never fails");
    } else {
        ask(&mut device, Io::Flush);
        drop(device);
    }
    let bytes = flat.0.borrow().clone();
    let mut slots: [Vec<usize>; 5] = Default::default();
    for slot in 0..BLOCKS * PAGES_PER_BLOCK * SLOTS_PER_PAGE {
        let found = &bytes.blocks[place(slot)..][..SLOT];
        if found[SLOT - 4..] == sum(found).to_le_bytes() {
            slots[usize::from(found[SECTOR + 14]).min(4)].push(slot);
        }
    }
    Image { bytes, slots }
}

thread_local! {
    static IMAGES: Vec<Image> = vec![
        image(0, false, false),
        image(12, true, false),
        image(60, true, false),
        image(400, false, false),
        image(400, true, true),
        image(900, true, false),
    ];
}

/// Changes something about one slot.
fn change(bytes: &mut Bytes, image: &Image, choices: &mut Choices) {
    let kind = 1 + choices.below(4);
    let known = &image.slots[kind];
    let slot = match known.is_empty() || choices.one_in(10) {
        true => choices.below(BLOCKS * PAGES_PER_BLOCK * SLOTS_PER_PAGE),
        false => known[choices.below(known.len())],
    };
    let mut content: Vec<u8> = bytes.blocks[place(slot)..][..SLOT].to_vec();
    for _ in 0..1 + choices.below(3) {
        // Mostly the trailer, or the fields in front.
        let (at, width) = match choices.below(12) {
            0 => (SECTOR, 8),
            1 => (SECTOR + 8, 4),
            2 => (SECTOR + 14, 1),
            3 => (SECTOR + 16, 2),
            4 => (SECTOR + 18, 2),
            5 => (SECTOR + 20, 4),
            6 => (SECTOR + 24, 4),
            7 => (choices.below(3) * 4, 4),
            8 => (choices.below(24) * 8, 8),
            9 => (choices.below(64) * 2, 2),
            10 => (8 + choices.below(20) * 24, 8),
            _ => (choices.below(SECTOR), 1),
        };
        let mut value = [0; 8];
        value[..width].copy_from_slice(&content[at..at + width]);
        let value = choices.hostile(u64::from_le_bytes(value)).to_le_bytes();
        content[at..at + width].copy_from_slice(&value[..width]);
    }
    let slot = match choices.below(8) {
        // The same again somewhere else, and it says so.
        0 => {
            let other = choices.below(BLOCKS * PAGES_PER_BLOCK * SLOTS_PER_PAGE);
            content[SECTOR + 24..SECTOR + 28].copy_from_slice(&(other as u32).to_le_bytes());
            other
        }
        1 => choices.below(BLOCKS * PAGES_PER_BLOCK * SLOTS_PER_PAGE),
        _ => slot,
    };
    if !choices.one_in(16) {
        let sum = sum(&content);
        content[SLOT - 4..].copy_from_slice(&sum.to_le_bytes());
    }
    bytes.blocks[place(slot)..][..SLOT].copy_from_slice(&content);
}

fn run(input: &[u8]) {
    let choices = &mut Choices::new(input);
    IMAGES.with(|images| {
        let image = &images[choices.below(images.len())];
        let mut bytes = image.bytes.clone();
        for _ in 0..1 + choices.below(6) {
            if choices.one_in(8) {
                labels::change(&mut bytes.labels, choices);
            } else {
                change(&mut bytes, image, choices);
            }
        }
        let flat = Flat(Rc::new(RefCell::new(bytes)));
        if let Ok(device) = Device::on_media(Box::new(flat.media()), choices.one_in(2)) {
            use_up(device);
        }
    });
}
