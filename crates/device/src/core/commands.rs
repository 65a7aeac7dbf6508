//! What the layer's commands do to bytes: sectors are copied once, sealed in their slots, and checked when they come back.

use std::ops::Range;

use ftl::{BufId, Command, Engine, Ftl, Header, LebId, PageAddr, ReadFor, SlotRead, Source, Tag};
use media::Page;
use media::nand::Class;

use super::{Core, Groomed, MediaRead, OpenSlots, index};

impl Engine for Core {
    type Payload<'a> = &'a [u8];

    #[inline]
    fn layer(&mut self) -> &mut Ftl {
        &mut self.ftl
    }

    fn stage(&mut self, buf: BufId, at: u32, count: u32, header: &Header, source: &Source, payload: &[u8]) {
        let sector = self.sector;
        if let Some(open) = &mut self.open_pages {
            let end = at + count;
            match open.iter_mut().find(|open| open.buf == buf) {
                // The records of trims are staged last, into a slot in between.
                Some(open) => open.slots = open.slots.start.min(at)..open.slots.end.max(end),
                None => open.push(OpenSlots { buf, first: header.slot, slots: at..end }),
            }
        }
        match source {
            Source::Request { first, .. } => {
                let start = *first as usize * sector;
                self.seal(buf, at, header, &payload[start..start + count as usize * sector]);
            }
            Source::Groom { id, first } => {
                let (_, from) =
                    self.groomed.iter().find(|(read, _)| read == id).expect("kept until the layer forgets it");
                let (bytes, step) = match from {
                    Groomed::Slots(slice) => (slice.bytes(), self.checker.slot_bytes()),
                    Groomed::Sectors(sectors) => (sectors.as_slice(), sector),
                };
                self.seal(buf, at, header, &bytes[*first as usize * step..][..sector]);
            }
            Source::Meta(bytes) => {
                let mut padded = bytes.clone();
                padded.resize(sector, 0);
                self.seal(buf, at, header, &padded);
                if header.kind == ftl::Kind::Trims
                    && let Some(stage) = self.kept()
                {
                    stage.trims_staged(header.seq);
                }
            }
        }
    }

    fn read(&mut self, id: u64, asked: SlotRead) {
        if self.reads.len() <= index(id) {
            self.reads.resize(index(id) + 1, None);
        }
        self.reads[index(id)] = Some(MediaRead { asked, rebuilding: false });
        if self.open_pages.is_some()
            && let Some(paced) = self.media.paced()
        {
            paced.reads_are(Class::of(&asked.purpose));
        }
        let bytes = self.bytes_of(&asked);
        match &mut self.merging {
            Some(merging) if matches!(asked.purpose, ReadFor::Request { .. }) => merging.push(id, asked.page, bytes),
            _ => self.media_submit(id, media::Command::Read { at: asked.page, bytes }),
        }
    }

    fn program(&mut self, id: u64, page: PageAddr, bytes: Range<u32>, buf: BufId) {
        if let Some(open) = &mut self.open_pages {
            open.retain(|open| open.buf != buf);
        }
        let buffer = self.buffer(buf).clone();
        self.media_submit(id, media::Command::Program { at: page, bytes, page: buffer });
    }

    fn erase(&mut self, id: u64, leb: LebId) {
        self.media_submit(id, media::Command::Erase { block: leb });
    }

    fn secure(&mut self, id: u64, command: &Command) {
        match command {
            Command::Allocate { leb, fill: true, .. } => self.media_submit(id, media::Command::Fill { block: *leb }),
            Command::Allocate { leb, .. } => self.media_submit(id, media::Command::Allocate { block: *leb }),
            Command::Anchor { anchor, .. } => {
                self.superblock.anchor.clone_from(anchor);
                self.write_superblock(id);
            }
            _ => self.media_submit(id, media::Command::Sync),
        }
    }

    fn handle(&mut self, command: &Command) {
        match *command {
            Command::Copy { tag, first, count, buf, at } => self.copy_staged(tag, first, count, buf, at),
            Command::Zero { tag, first, count } => {
                let (start, end) = (first as usize * self.sector, (first + count) as usize * self.sector);
                self.pending[tag as usize].buf.as_mut().expect("a read has a buffer")[start..end].fill(0);
            }
            Command::Blank { buf, at, count } => {
                let slot_bytes = self.checker.slot_bytes();
                let page = self.buffer(buf);
                // SAFETY: as in `seal`.
                unsafe { page.bytes_mut(at as usize * slot_bytes..(at + count) as usize * slot_bytes) }.fill(0);
            }
            Command::Take { buf, page, opened } => {
                let kept = self.kept().and_then(|stage| stage.page(page, opened));
                self.buffers[buf as usize] = Some(kept.unwrap_or_else(|| self.media.page()));
            }
            Command::Release { buf } => self.buffers[buf as usize] = None,
            Command::Record { ref header, ref record } => {
                if let Some(stage) = self.kept() {
                    stage.note_trim(header, record);
                }
            }
            Command::Finish { leb } => {
                if let Some(flashback) = self.media.flashback() {
                    flashback.finish(leb);
                }
                if let Some(objects) = self.media.objects() {
                    objects.finish(leb);
                }
            }
            Command::Forget { id } => {
                // An id may be in use again already; the older one is meant.
                if let Some(at) = self.groomed.iter().position(|(read, _)| *read == id) {
                    self.groomed.remove(at);
                }
            }
            _ => {}
        }
    }
}

impl Core {
    fn buffer(&self, buf: BufId) -> &Page {
        self.buffers[buf as usize].as_ref().expect("the layer took the buffer first")
    }

    fn copy_staged(&mut self, tag: Tag, first: u32, count: u32, buf: BufId, at: u32) {
        let slot_bytes = self.checker.slot_bytes();
        let start = at as usize * slot_bytes;
        let page = self.buffers[buf as usize].as_ref().expect("the layer took the buffer first");
        let slots = page.bytes(start..start + count as usize * slot_bytes);
        let pending = &mut self.pending[tag as usize];
        let out = pending.buf.as_mut().expect("a read has a buffer");
        let out = out[first as usize * self.sector..].chunks_exact_mut(self.sector);
        for (slot, out) in slots.chunks_exact(slot_bytes).zip(out) {
            if !self.checker.open(slot, out) {
                tracing::error!("a sealed sector changed in memory before it was written");
                pending.failed = true;
            }
        }
    }

    /// Copies sectors into their slots and seals them.
    #[inline]
    fn seal(&self, buf: BufId, at: u32, header: &Header, sectors: &[u8]) {
        let slot_bytes = self.checker.slot_bytes();
        let start = at as usize * slot_bytes;
        let count = sectors.len() / self.sector;
        // SAFETY: the layer gives each slot of a page out once, before any program that covers it, and reads of
        // the page by others are of other slots; the slice lives only in this function.
        let slots = unsafe { self.buffer(buf).bytes_mut(start..start + count * slot_bytes) };
        for (i, (slot, sector)) in (0..).zip(slots.chunks_exact_mut(slot_bytes).zip(sectors.chunks_exact(self.sector)))
        {
            self.checker.place(slot, sector, &header.nth(i));
        }
    }
}
