//! Backups: whatever a stream says, only what was written is taken.

use std::sync::LazyLock;

use device::Secret;
use openvsl_backup::{Header, Moment, Piece, Reader, Writer};
use uuid::Uuid;

use super::Target;

const SECTORS: u64 = 64;

static SECRET: LazyLock<Secret> = LazyLock::new(|| Secret::key(&[7; 32]));

/// Whole streams: open, encrypted, and one that goes on from another.
static STREAMS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let moment = |number| Moment { number, name: "s".into() };
    let header = |since: Option<u64>| Header {
        id: Uuid::from_u128(1),
        device: "d".into(),
        name: "n".into(),
        sector_bytes: 512,
        sectors: SECTORS,
        taken_at: 0,
        snapshot: since.map(|since| moment(since + 1)),
        since: since.map(moment),
        key: None,
    };
    let stream = |since: Option<u64>, secret: Option<&Secret>| {
        let mut writer = Writer::create(Vec::new(), header(since), secret).expect("memory takes it");
        for lba in [0, 1, 5, 40] {
            writer.held(lba, &[lba as u8; 512]).expect("memory takes it");
            writer.flush().expect("memory takes it");
        }
        if since.is_some() {
            writer.trimmed(50, 3).expect("memory takes it");
        }
        writer.finish().expect("memory takes it")
    };
    vec![stream(None, None), stream(None, Some(&SECRET)), stream(Some(2), None)]
});

pub const TARGET: Target = Target {
    name: "backup",
    about: "a backup that is read: what is taken of it is what was written, whatever was changed",
    weight: 100,
    corpus: || STREAMS.clone(),
    words: &["OVSLBACK", "\"key\":", "\"since\":", "\"sector_bytes\":512"],
    run: |input| {
        let Ok(mut reader) = Reader::open(input, Some(&SECRET)) else { return };
        let mut end = 0;
        let whole = loop {
            match reader.next_frame() {
                Ok(Some(frame)) => {
                    for (piece, data) in frame.pieces() {
                        assert!(piece.lba() >= end && piece.end() <= SECTORS, "pieces ascend within the device");
                        end = piece.end();
                        if let Piece::Held { lba, .. } = piece {
                            let right = data.chunks(512).zip(lba..).all(|(sector, lba)| sector == [lba as u8; 512]);
                            assert!(right, "a wrong byte was taken");
                        }
                    }
                }
                Ok(None) => break true,
                Err(_) => break false,
            }
        };
        assert!(!whole || STREAMS.iter().any(|stream| stream == input), "something changed was taken for whole");
    },
};
