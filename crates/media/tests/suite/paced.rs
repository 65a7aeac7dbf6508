//! Flash in time, with content: moments worked out by hand, on a clock that the test drives.

use media::nand::{Class, Nand, Nanos, Paced, Shape, inner_geometry};
use media::{Command, Done, Geometry, Media, MediaError, Memory, Page, PageAddr};

use crate::common::{at, byte, fill};

const HOST: Class = Class::Host { first: true };

/// Four dies, one of every stripe for parity; 50 us a read, 300 and 900 us a program, 3 ms an erase; a register moves in
/// 10 ns a byte, the data path takes 1 ns a byte to and 2 ns from the host, and 10 us a request.
fn nand() -> Nand {
    let profile = profile::find("iodrive-320-mlc").expect("a sheet");
    let mut sheet = profile.flash().expect("a flash card").module.clone();
    (sheet.nand.read_us, sheet.nand.program_us, sheet.nand.erase_us) = (50.0, vec![300.0, 900.0], 3000.0);
    (sheet.nand.variation_percent, sheet.nand.channels) = (0.0, 4);
    (sheet.nand.channel_read_bytes_per_s, sheet.nand.channel_write_bytes_per_s) = (100_000_000, 100_000_000);
    (sheet.controller.read_bytes_per_s, sheet.controller.write_bytes_per_s) = (1_000_000_000, 500_000_000);
    sheet.controller.read_request_us = 10.0;
    let geometry = Geometry {
        dies: 4,
        parity: 1,
        blocks: 8,
        pages_per_block: 4,
        slots_per_page: 2,
        sector_bytes: 4096,
        trailer_bytes: ftl::TRAILER_BYTES,
        unit_bytes: 8256,
    };
    let shape = Shape { geometry, dies_per_chip: 1, spares: 1, erase_divisor: 1, slc_pages: 0 };
    Nand::new(&shape, &sheet.nand, &sheet.controller, &sheet.energy, 1)
}

fn medium() -> Paced {
    let nand = nand();
    let inner = Memory::new(inner_geometry(nand.geometry()));
    Paced::new(nand, Box::new(inner))
}

fn page(medium: &mut Paced, seed: u32) -> Page {
    let page = medium.page();
    fill(&page, 0..8256, seed);
    page
}

fn begin(medium: &mut Paced, id: u64, command: Command) {
    assert!(medium.submit(id, command).is_none(), "nothing of flash is done on the spot");
}

fn begin_program(medium: &mut Paced, id: u64, at: PageAddr, seed: u32) {
    let page = page(medium, seed);
    begin(medium, id, Command::Program { at, bytes: 0..8256, page });
}

/// Checks that a command is done at a moment and not before.
fn expect_at(medium: &mut Paced, id: u64, moment: Nanos) -> Done {
    medium.advance(moment - 1);
    assert!(medium.poll().is_none(), "{id} is done too early");
    medium.advance(moment);
    let done = medium.poll().expect("done by now");
    assert_eq!((done.id, medium.lateness()), (id, 0));
    done
}

#[test]
fn commands_end_when_the_model_says() {
    let mut medium = medium();
    begin_program(&mut medium, 1, at(0, 2, 0), 5);
    // 8 KiB take 16,384 ns on the data path and 81,920 ns on the channel at the same time; then the cells.
    assert!(expect_at(&mut medium, 1, 381_920).result.is_ok());
    medium.reads_are(HOST);
    begin(&mut medium, 2, Command::Read { at: at(0, 2, 0), bytes: 4128..8256 });
    // The cells, then 14,096 ns of the data path and 40,960 ns of the channel.
    let done = expect_at(&mut medium, 2, 381_920 + 50_000 + 40_960);
    let slice = done.result.expect("read").expect("bytes");
    assert!(slice.bytes().iter().zip(4128..).all(|(found, index)| *found == byte(5, index)));
    begin(&mut medium, 3, Command::Erase { block: 2 });
    expect_at(&mut medium, 3, 472_880 + 3_000_000);
    assert_eq!(medium.next_event(), None);
}

#[test]
fn moments_do_not_depend_on_how_often_anybody_looks() {
    let moments = |step: Nanos| {
        let mut medium = medium();
        for (id, die) in [(0, 0), (1, 0), (2, 1)] {
            begin_program(&mut medium, id, at(die, 0, 0), 1);
        }
        let mut done = Vec::new();
        for now in (step..4_000_000).step_by(step as usize) {
            medium.advance(now);
            done.extend(std::iter::from_fn(|| medium.poll()).map(|done| done.id));
        }
        (done, medium.nand().counts().die_busy)
    };
    assert_eq!(moments(1_000), moments(1_999_999));
    assert_eq!(moments(1_000).0, [0, 2, 1]);
}

#[test]
fn pages_of_all_dies_keep_apart_and_parity_takes_no_place() {
    let mut medium = medium();
    let geometry = *medium.geometry();
    let pages: Vec<PageAddr> = (0..geometry.pages_per_leb()).map(|n| geometry.page_at(3, n)).collect();
    for (id, at) in (0..).zip(&pages) {
        begin_program(&mut medium, id, *at, id as u32);
    }
    for _ in &pages {
        medium.wait();
        assert!(medium.poll().expect("a program is done").result.is_ok());
    }
    assert_eq!(medium.nand().counts().parity_bytes, 4 * 8192, "one parity page a stripe");
    for (id, at) in (0..).zip(&pages) {
        begin(&mut medium, id, Command::Read { at: *at, bytes: 0..8256 });
        medium.wait();
        let slice = medium.poll().expect("a read is done").result.expect("read").expect("bytes");
        assert!(slice.bytes().iter().zip(0..).all(|(found, index)| *found == byte(id as u32, index)));
    }
    assert_eq!(medium.allocated_bytes(), Some(12 * 8256), "pages of data only");
}

/// A medium whose reads take as long as the test wants.
struct Slow {
    memory: Memory,
    held: bool,
}

impl Media for Slow {
    fn geometry(&self) -> &Geometry {
        self.memory.geometry()
    }
    fn page(&mut self) -> Page {
        self.memory.page()
    }
    fn submit(&mut self, id: u64, command: Command) -> Option<Done> {
        self.memory.submit(id, command)
    }
    fn poll(&mut self) -> Option<Done> {
        self.held = !self.held;
        if self.held { None } else { self.memory.poll() }
    }
    fn wait(&mut self) {}
    fn read_label(&mut self, die: u32, copy: u8) -> Result<Vec<u8>, MediaError> {
        self.memory.read_label(die, copy)
    }
    fn allocated_bytes(&self) -> Option<u64> {
        self.memory.allocated_bytes()
    }
    fn free_bytes(&self) -> Option<u64> {
        None
    }
    fn inner(&mut self) -> Option<&mut dyn Media> {
        Some(&mut self.memory)
    }
}

#[test]
fn a_slow_inner_medium_is_told_and_not_hidden() {
    let nand = nand();
    let memory = Memory::new(inner_geometry(nand.geometry()));
    let mut medium = Paced::new(nand, Box::new(Slow { memory, held: false }));
    begin(&mut medium, 1, Command::Read { at: at(0, 0, 0), bytes: 0..4128 });
    medium.advance(90_960);
    assert!(medium.poll().is_none(), "the flash has it, the inner medium not yet");
    medium.advance(100_000);
    let done = medium.poll().expect("done by now");
    assert_eq!((done.id, medium.lateness()), (1, 9_040));
}

#[test]
fn one_label_serves_all_dies() {
    let mut medium = medium();
    begin(&mut medium, 1, Command::WriteLabel { copy: 1, bytes: vec![vec![7; 100]; 4] });
    assert!(medium.poll().expect("a label takes no time").result.is_ok());
    assert_eq!(medium.now(), 0);
    for die in 0..4 {
        assert_eq!(medium.read_label(die, 1).map(|bytes| bytes[..100].to_vec()), Ok(vec![7; 100]));
    }
    assert!(medium.read_label(4, 1).is_err());
}

#[test]
fn what_is_kept_can_be_read_before_it_is_programmed() {
    let mut medium = medium();
    let open = page(&mut medium, 9);
    medium.keep(at(1, 0, 0), 0..4128, open);
    medium.wait();
    assert!(medium.poll().is_none(), "nobody waits for it");
    begin(&mut medium, 2, Command::Read { at: at(1, 0, 0), bytes: 0..4128 });
    medium.wait();
    let slice = medium.poll().expect("read").result.expect("read").expect("bytes");
    assert!(slice.bytes().iter().zip(0..).all(|(found, index)| *found == byte(9, index)));
    assert_eq!(medium.nand().counts().programs, 0);
}
