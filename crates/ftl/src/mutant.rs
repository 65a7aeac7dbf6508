//! Planted mutants: defects that the test suites must find. Compiled in only with the feature `mutants`.
//!
//! One list for the whole storage layer, since all of it can see this crate. Which suite finds which stands in `tests/planted.py`.

/// Whether a planted defect is switched on: always `false` in a build without the feature `mutants`.
#[macro_export]
#[doc(hidden)]
macro_rules! mutant {
    ($name:ident) => {{
        #[cfg(feature = "mutants")]
        {
            $crate::mutants::is_on($crate::mutants::Mutant::$name)
        }
        #[cfg(not(feature = "mutants"))]
        {
            false
        }
    }};
}

planted::defects! {
    // Durability.
    DroppedFua "a FUA write is answered before it is durable"
    WriteThroughForgotten "writes through are answered before they are durable"
    EarlyFlush "a flush is answered at once"
    SyncBeforePrograms "the media is synced before the programs it must cover are done"
    DurableAtAnswer "what is taken while a sync is under way counts as covered by it"
    WaitersTogether "a sync answers those who came after it began"
    OverlapUnawaited "a sync that overlaps another does not wait for the programs that it must cover"
    NewestSyncCounts "of syncs that overlap the first that is done counts as the newest"
    SyncOvertakes "a sync that is done counts before older ones are, which may still fail"
    GroomUnsealed "a flush leaves the open page of the groomer in memory"
    LostRetry "a program that failed is not tried again"
    SyncForgiven "a sync that failed counts as one that succeeded"
    BufferReused "a page buffer is used again while it is being programmed"
    // Space and grooming.
    EraseBeforeDurable "an emptied LEB is erased before what emptied it is durable"
    ErasePinned "an emptied LEB is used again while it is being read"
    GroomTheWindow "LEBs newer than the checkpoint are groomed"
    ClosedEarly "a LEB counts as older than what stands in it"
    GroomBeforeStart "the groomer works before the checkpoint that ends a recovery counts"
    GroomOverwrites "the groomer maps its copy over newer data"
    GroomUnmapped "the groomer forgets to point the map at every eighth copy"
    DamagedFreed "a LEB with sectors that cannot be read is freed like any other"
    StaleLiveCount "overwritten sectors stay live"
    TrimKeepsLive "trimmed sectors stay live"
    PolicyAfterCut "after a power cut that leaves hardly any free space the policy chooses victims as ever"
    NoReserve "host writes take the last LEBs, which the groomer needs"
    CheckpointForItself "a checkpoint is asked for so that the LEBs of the last one may be groomed"
    GroomBehindLast "the groomer moves sectors after the checkpoint that ends a detach began"
    RecoveryStranded "a checkpoint takes the LEBs that a recovery needs for its own"
    StreamsLeft "a policy that is changed leaves the LEBs of streams open that nobody writes any more"
    MovedAge "what the groomer moved counts as written by the host when it was moved"
    RoundedApart "sectors of one file that had one label get different ones when it is written anew"
    TalliedTwice "a sector that is written anew stays in the count of living ones"
    AgeForgotten "whatever age sectors die at, the life table counts them as young"
    WaitingUnnoted "a sector that waits for room to be moved to keeps the note that it had before the policy placed it"
    DestinationKept "what was to be moved and went meanwhile leaves its destination to the next sector of its page"
    ListedForEver "LEBs that come to be worth grooming are overlooked as long as others are left that once were"
    PricedApart "every victim is priced by itself, however little it has to do with the others"
    AheadAtAnyPrice "in quiet times the groomer takes what it would not take under load"
    ColdStays "what is never overwritten keeps its LEB for ever"
    WornForHot "what is overwritten soon goes to the most worn LEBs"
    // Trims.
    LostTrim "replay ignores trim records"
    TrimUnstaged "a flush leaves open trim records in memory"
    FullTrimsDropped "a slot full of trim records is never written"
    ShortTrim "replay trims all but the last sector"
    TrimsFirstOnly "trims wait for a LEB of the first stream although others have room"
    TrimUnnumbered "a trim shares its sequence number with what comes after it"
    // Checkpoints and recovery.
    AnchorBeforeDurable "the anchor is written before what the checkpoint points to is durable"
    CheckpointBeginsLate "replay begins where the checkpoint ended instead of where it began"
    CheckpointSkips "a checkpoint leaves out the sector at which a slot of it is full"
    CheckpointFreedEarly "the old checkpoint is freed before the new anchor is on media"
    AlwaysClean "a checkpoint beside traffic is taken for that of a clean detach"
    TornBatch "replay takes incomplete batches"
    UnorderedReplay "replay applies entries in the order of their place instead of their sequence"
    EarlierLife "what a LEB held in an earlier life is replayed"
    GapSinceCheckpoint "pages older than the checkpoint count as a gap at the end of a LEB"
    ForgottenOpenLeb "replay leaves out the LEBs that were open at the checkpoint"
    FreedLog "LEBs without live sectors are free before the checkpoint that ends a recovery counts"
    StartsTooSoon "requests are taken before the checkpoint that ends a recovery counts"
    LateEpoch "an attach epoch is used before it is on media"
    LateOpened "a LEB opened within a write says that it is newer than that write's beginning"
    HeadlessLeft "a LEB whose header is rotten is no part of the log"
    WitnessUnheard "what a witness saw durable may be missing from the log"
    HolesUnseen "recovery does not look for flushed entries that are missing"
    // Labels.
    SameCopy "both copies of the superblock are written to the same place"
    OneCopy "what a superblock says is written to one copy only"
    LoneCopyBelieved "a clean superblock whose other copy is bad is believed without a look at the log"
    OlderLabel "of two valid copies of the superblock the older one counts"
    LabelUnchecked "a superblock's checksum is not compared"
    // Requests.
    ReadOnlyIgnored "a device attached read-only takes writes"
    ZeroesForgotten "write zeroes leaves what stood there"
    ReadShort "the third sector of a read from media is left out"
    // Checks of what is read.
    RotPasses "a sector's checksum is not compared"
    PlacePasses "a sector's place is not compared"
    StalePasses "a sector older than its LEB passes"
    // Parity.
    JournalInPlace "the parity journal is written in place"
    JournalNextDoor "a row of the journal is written in a unit where its neighbour counts"
    NoJournal "a sync does not write the parity of what is open"
    SeatReused "a place in the journal is used again before the parity that takes over is durable"
    ParityUnawaited "a sync does not wait for the parity of stripes that are complete"
    OpenStripeLeft "a stripe that ends early gets no parity"
    LossForgotten "a die's loss is not on record before what depends on it is answered"
    ParitySkew "finished parity leaves out the last lane"
    OldCopyServes "an old copy of a die serves in its place"
    StaleDie "a die that is on record as lost is believed when it comes back"
    NoSettle "stripes that a crash left open stay without parity"
    JournalUnread "what a crash left open is settled without a look into the journal"
    LinearChecksum "parity solves for slots whose checksum is linear"
    StaleSolved "what parity gives may be older than its LEB"
    // Healing, rebuilds and scrubs.
    HealedInPlace "a sector that was healed is not written elsewhere"
    HealedShifted "parity solves for a page's first slot whichever was asked for"
    RebuildSkipsStripe "a rebuild leaves out the first stripe of each LEB"
    RebuildUnchecked "a rebuild takes the sectors that it works with for right"
    PaddingLeft "what fills a page up is whatever stood in its buffer"
    RebuildLiveOnly "a rebuild takes sectors that are not live for right"
    RebuildDeadLeft "a rebuild leaves out what was overwritten, although what overwrote it is not durable"
    PinEmptiedLeft "a rebuild leaves out a LEB that was emptied, although it is read or what emptied it is not durable"
    RebuildTrustsBlank "a rebuild takes what is blank for what was never written"
    ScrubBlind "a scrub takes every sector for right"
    ScrubParityBlind "a scrub takes every parity for right"
    // Encryption and erase.
    NonceWithoutSequence "a nonce is made of the attach's part alone"
    UnboundAddress "the trailer is not authenticated with its sector"
    ErasedOnce "an erase overwrites one copy of the superblock only"
    ResumedTooFar "an erase that goes on leaves out what follows its mark"
    EraseUnmarked "a device that is being erased can be attached"
    // What a killed process leaves.
    StagedSlotForgotten "what a killed process left of a page is written back without its last slot"
    StagedTrimsForgotten "trims that no page holds yet stand in the memory of the process only"
    StagedClearedEarly "a page counts as programmed once its program is begun"
    StagedOverNewer "what a killed process left is written over what is newer"
    StagedEpochIgnored "what an earlier attach left counts as that of the last one"
    StagedDieLeft "what a killed process left for a lost die is not given to parity"
    StagedSurvivesCut "what was answered survives a power cut on command"
    // Identities.
    TwinTaken "a copy is attached beside its original"
    IdentityUnannounced "a file takes a new identity before the others know of it"
    // The disk of a virtual machine.
    FlushUnawaited "a guest's flush is answered before it is done"
    ReplaySkips "the first of what a back end had taken is not carried out again"
    ReplayReversed "what a back end had taken is carried out again in reverse"
    TakenUnnoted "what is taken is not noted in the in-flight region"
    ReadShifted "what was read is copied one segment too far"
    OutsideTaken "a request whose data lie outside of the guest's memory is carried out"
}
