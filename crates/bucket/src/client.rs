//! Between a device's thread and the threads that talk to the store.

use std::collections::VecDeque;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::mpsc;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use media::object::{Answer, Ask, Failure, NotesFile, Outside, steady_ms};
use media::ring::mailbox::{Mailbox, Sender, mailbox};
use media::ring::{Entry, Owner, SharedRing};
use rustix::event::PollFlags;
use tokio::runtime::{Builder, Runtime};

use crate::Store;

/// Threads that upload, for all devices of the process: each object is hashed on its way.
const UPLOAD_THREADS: usize = 2;

/// Threads for all other requests, which are small. With one, a request and its connection wake each other on the same thread, and no read waits
/// behind the hashing of an upload.
const SMALL_THREADS: usize = 1;

/// How long a wait lasts at most: whoever waits looks at the clock again.
const MOMENT: Duration = Duration::from_millis(50);

/// The number of a message that only wakes up.
const WAKE: u64 = u64::MAX - 1;

/// The ring's token for the bell.
const BELL: u64 = 0;

/// One device's way to its store and its notes.
pub struct Client {
    store: Store,
    /// The same store, with connections that only uploads use.
    uploads: Store,
    ring: SharedRing,
    owner: Owner,
    sender: Sender<(u64, Answer)>,
    mailbox: Mailbox<(u64, Answer)>,
    answers: VecDeque<(u64, Answer)>,
    notes: mpsc::Sender<(u64, Vec<u8>)>,
    /// The moment of the last alarm, which replaces those before it.
    alarm_ms: Arc<Mutex<u64>>,
}

/// The threads that talk to stores, for uploads or for all other requests.
fn threads(of: &'static OnceLock<Runtime>, count: usize, name: &str) -> io::Result<&'static Runtime> {
    if let Some(runtime) = of.get() {
        return Ok(runtime);
    }
    let made = Builder::new_multi_thread().worker_threads(count).thread_name(name).enable_all().build()?;
    Ok(of.get_or_init(|| made))
}

/// The thread of small requests.
pub(crate) fn runtime() -> io::Result<&'static Runtime> {
    static SMALL: OnceLock<Runtime> = OnceLock::new();
    threads(&SMALL, SMALL_THREADS, "vsl-objects")
}

/// The threads of uploads.
pub(crate) fn upload_runtime() -> io::Result<&'static Runtime> {
    static UPLOADS: OnceLock<Runtime> = OnceLock::new();
    threads(&UPLOADS, UPLOAD_THREADS, "vsl-uploads")
}

impl Client {
    /// A way to a store for the device whose thread has this ring. The store is opened twice: `uploads` has connections of its own.
    ///
    /// # Errors
    /// The operating system has no descriptor, thread or memory left.
    pub fn new([store, uploads]: [Store; 2], notes: NotesFile, ring: &SharedRing) -> io::Result<Client> {
        runtime()?;
        upload_runtime()?;
        let (sender, mailbox) = mailbox()?;
        let (to_notes, asked) = mpsc::channel();
        let answers = sender.clone();
        std::thread::Builder::new().name("vsl-notes".into()).spawn(move || write_notes(notes, &asked, &answers))?;
        let owner = ring.borrow_mut().register();
        let client = Client {
            store,
            uploads,
            ring: ring.clone(),
            owner,
            sender,
            mailbox,
            answers: VecDeque::new(),
            notes: to_notes,
            alarm_ms: Arc::default(),
        };
        client.listen()?;
        Ok(client)
    }

    fn listen(&self) -> io::Result<()> {
        let entry = Entry::Poll { fd: self.mailbox.bell().as_raw_fd(), events: PollFlags::IN, multi: true };
        // SAFETY: it points to nothing, and the kernel holds the descriptor's file while it polls it.
        unsafe { self.ring.borrow_mut().push(self.owner, BELL, entry) }
    }

    /// Rings the bell after a while; where it is for an alarm, unless another took its place.
    fn wake_after(&self, after: Duration, alarm: Option<u64>) {
        let (sender, alarm_ms) = (self.sender.clone(), Arc::clone(&self.alarm_ms));
        let Ok(runtime) = runtime() else { return };
        runtime.spawn(async move {
            tokio::time::sleep(after).await;
            let counts = alarm.is_none_or(|at| *alarm_ms.lock().unwrap_or_else(PoisonError::into_inner) == at);
            if counts {
                deliver(sender, (WAKE, Answer::Done)).await;
            }
        });
    }

    fn take_answers(&mut self) {
        let mut rang = false;
        loop {
            let next = self.ring.borrow_mut().next(self.owner);
            let Some(completion) = next else { break };
            rang = true;
            if !completion.more
                && let Err(error) = self.listen()
            {
                tracing::error!(%error, "the store's answers cannot be listened to");
            }
        }
        if rang {
            self.mailbox.answer_bell();
            while let Ok(Some((id, answer))) = self.mailbox.receive() {
                if id != WAKE {
                    self.answers.push_back((id, answer));
                }
            }
        }
    }
}

/// Puts an answer into the device's mailbox. Where that is full, another thread waits for room. The device may be gone; what was done stays done.
async fn deliver(sender: Sender<(u64, Answer)>, answer: (u64, Answer)) {
    if let Ok(Some(answer)) = sender.try_send(answer) {
        let _ = tokio::task::spawn_blocking(move || sender.send(answer)).await;
    }
}

/// Appends notes in the order in which they come, several with one sync where they came together.
fn write_notes(mut file: NotesFile, asked: &mpsc::Receiver<(u64, Vec<u8>)>, answers: &Sender<(u64, Answer)>) {
    while let Ok((first, mut bytes)) = asked.recv() {
        let mut ids = vec![first];
        while let Ok((id, more)) = asked.try_recv() {
            ids.push(id);
            bytes.extend(more);
        }
        let answer = match file.append(&bytes) {
            Ok(()) => Answer::Done,
            Err(error) => Answer::Failed(Failure::Other(error.to_string())),
        };
        for id in ids {
            if answers.send((id, answer.clone())).is_err() {
                return;
            }
        }
    }
}

impl Outside for Client {
    fn ask(&mut self, id: u64, ask: Ask) {
        if let Ask::Note { bytes } = ask {
            if self.notes.send((id, bytes)).is_err() {
                self.answers.push_back((id, Answer::Failed(Failure::Other("nobody writes notes any more".into()))));
            }
            return;
        }
        let sender = self.sender.clone();
        let (store, runtime) = match ask {
            Ask::Put { .. } => (self.uploads.clone(), upload_runtime()),
            _ => (self.store.clone(), runtime()),
        };
        match runtime {
            Ok(runtime) => {
                runtime.spawn(async move {
                    let answer = store.perform(ask).await;
                    deliver(sender, (id, answer)).await;
                });
            }
            Err(error) => self.answers.push_back((id, Answer::Failed(Failure::Other(error.to_string())))),
        }
    }

    fn answer(&mut self) -> Option<(u64, Answer)> {
        if self.answers.is_empty() {
            self.take_answers();
        }
        self.answers.pop_front()
    }

    fn wait(&mut self) {
        if !self.answers.is_empty() {
            return;
        }
        self.wake_after(MOMENT, None);
        let waited = self.ring.borrow_mut().wait_for(self.owner);
        if let Err(error) = waited {
            tracing::error!(%error, "the store's answers cannot be waited for");
            std::thread::sleep(MOMENT);
        }
    }

    fn now_ms(&self) -> u64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
    }

    fn steady_ms(&self) -> u64 {
        steady_ms()
    }

    fn alarm(&mut self, at_ms: u64) {
        *self.alarm_ms.lock().unwrap_or_else(PoisonError::into_inner) = at_ms;
        self.wake_after(Duration::from_millis(at_ms.saturating_sub(self.now_ms())), Some(at_ms));
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.ring.borrow_mut().unregister(self.owner);
    }
}
