//! Requests to a device, one after the other.

use device::{Device, Io, IoError, SnapshotId, Submitted};

/// One request, waited for; nothing when the power goes meanwhile.
pub fn ask(device: &mut Device, io: Io<'_>) -> Option<Result<Option<Vec<u8>>, IoError>> {
    ask_in(device, None, io)
}

/// The same of a clone.
pub fn ask_in(device: &mut Device, view: Option<SnapshotId>, io: Io<'_>) -> Option<Result<Option<Vec<u8>>, IoError>> {
    let mut io = Some(io);
    for _ in 0..1_000_000 {
        if let Some(request) = io.take() {
            match device.submit_in(view, 1, request) {
                Submitted::Done(result) => return Some(result),
                Submitted::Pending => {}
                Submitted::Busy(request) => io = Some(request),
            }
        }
        if let Some(completion) = device.poll() {
            return Some(completion.result);
        }
        if device.power_cut().is_some() {
            return None;
        }
        device.wait();
    }
    panic!("a request is never answered");
}

/// One request, waited for.
pub fn call(device: &mut Device, io: Io<'_>) -> Result<Option<Vec<u8>>, IoError> {
    ask(device, io).expect("the power is on")
}
