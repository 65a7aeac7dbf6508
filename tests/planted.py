#!/usr/bin/python3
"""Tests the tests of the storage layer and of the lab: each planted defect must be found by the suite that is named for it, within a minute."""

import argparse
import json
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VARIABLE = "OPENVSL_MUTANT"
LIMIT = 60
# Where a seed is named and finds nothing, because the layer or the simulator changed since, the next ones are tried.
FURTHER_SEEDS = 100_000
# The crates that have defects planted in them.
PACKAGES = ["ftl", "media", "device", "sim", "trace", "lab", "report", "nvme", "export"]
# What is built: those, and others whose tests find some of the defects.
BUILT = [*PACKAGES, "card"]
FEATURES = [*(f"{package}/mutants" for package in PACKAGES), "device/simulation"]

# What finds each: a seed of the simulator (of any kind, of encrypted formats, of dies that fail), all sequences of so many
# operations on the tiny module, or one test of a crate: package, target, name.
KILLED_BY = {
    "DroppedFua": "exhaustive 1",
    "WriteThroughForgotten": "device drills durability::written_through_nothing_answered_is_lost_in_any_cut",
    "EarlyFlush": "exhaustive 1",
    "SyncBeforePrograms": "seed 1",
    "DurableAtAnswer": "seed 1",
    "WaitersTogether": "seed 1",
    "OverlapUnawaited": "exhaustive 1",
    "NewestSyncCounts": "exhaustive 1",
    "SyncOvertakes": "ftl order of_syncs_that_overlap_each_counts_when_those_before_it_are_done",
    "GroomUnsealed": "seed 6",
    "LostRetry": "seed 22",
    "SyncForgiven": "seed 22",
    "BufferReused": "seed 1",
    "EraseBeforeDurable": "seed 66",
    "ErasePinned": "ftl order a_leb_that_is_being_read_is_not_used_again",
    "GroomTheWindow": "seed 8",
    "ClosedEarly": "seed 357",
    "GroomBeforeStart": "ftl order nothing_is_groomed_before_the_recovery_has_ended",
    "GroomOverwrites": "ftl order what_is_trimmed_while_the_groomer_waits_for_room_stays_trimmed",
    "GroomUnmapped": "seed 3",
    "DamagedFreed": "seed 3",
    "StaleLiveCount": "seed 1",
    "TrimKeepsLive": "seed 1",
    "PolicyAfterCut": "ftl lib victim::tests::the_emptiest_goes_first_where_a_cut_left_hardly_any_space",
    "NoReserve": "seed 2373",
    "CheckpointForItself": "sim lib exhaustive::run::tests::a_device_short_of_space_comes_to_rest",
    "GroomBehindLast": "seed 35171",
    "RecoveryStranded": "ftl lib checkpoint::tests::a_checkpoint_leaves_room_for_that_of_a_recovery",
    "MovedAge": "ftl lib policy::lifetime::tests::what_was_moved_is_as_old_as_before",
    "RoundedApart": "ftl lib policy::lifetime::tests::a_file_keeps_one_label",
    "TalliedTwice": "ftl lib policy::lifetime::tests::every_living_sector_is_counted_once",
    "AgeForgotten": "ftl lib policy::lifetime::life_table::tests::what_dies_at_once_is_worth_waiting_for_and_what_is_left_is_not",
    "WaitingUnnoted": "ftl order what_is_trimmed_while_the_groomer_waits_for_room_stays_trimmed",
    "DestinationKept": "ftl order what_is_trimmed_while_the_groomer_waits_for_room_stays_trimmed",
    "ListedForEver": "ftl lib policy::lifetime::shortlist::tests::what_changes_counts_at_once_on_the_list_and_soon_elsewhere",
    "StreamsLeft": "ftl write_amplification a_policy_that_is_changed_leaves_no_stream_open",
    "PricedApart": "ftl lib pace::tests::a_full_victim_slows_writes_down_no_more_than_an_empty_one",
    "AheadAtAnyPrice": "card pacing grooming_ahead_costs_little_lifetime",
    "ColdStays": "ftl wear what_is_never_overwritten_moves_to_worn_blocks_for_little",
    "WornForHot": "ftl wear after_500_drive_writes_of_80_20_all_blocks_are_worn_alike",
    "LostTrim": "seed 1",
    "TrimUnstaged": "seed 1",
    "FullTrimsDropped": "ftl order every_trim_is_on_the_medium_after_a_flush",
    "ShortTrim": "seed 4",
    "TrimsFirstOnly": "lab waf trims_are_taken_wherever_there_is_room",
    "TrimUnnumbered": "seed 24",
    "AnchorBeforeDurable": "seed 53",
    "CheckpointBeginsLate": "seed 2",
    "CheckpointSkips": "seed 1",
    "CheckpointFreedEarly": "seed 1311",
    "AlwaysClean": "seed 1",
    "TornBatch": "exhaustive 1",
    "UnorderedReplay": "seed 1",
    "EarlierLife": "ftl lib recovery::tests::an_earlier_life_is_not_replayed",
    "GapSinceCheckpoint": "seed 2",
    "ForgottenOpenLeb": "seed 2",
    "FreedLog": "ftl order what_was_replayed_stays_until_the_next_checkpoint_counts",
    "StartsTooSoon": "seed 13",
    "LateEpoch": "seed 1",
    "LateOpened": "seed 1",
    "HeadlessLeft": "device superblocks a_leb_without_its_header_is_not_forgotten",
    "WitnessUnheard": "device witness a_lost_end_of_the_log_is_refused",
    "HolesUnseen": "device faults a_log_with_a_hole_is_refused",
    "SameCopy": "encrypted-seed 3",
    "OneCopy": "seed 8",
    "LoneCopyBelieved": "device superblocks a_lone_clean_copy_is_held_against_the_log",
    "OlderLabel": "seed 4",
    "LabelUnchecked": "device lib superblock::tests::every_byte_counts",
    "ReadOnlyIgnored": "device files read_only_takes_no_writes_and_changes_no_byte",
    "ZeroesForgotten": "seed 1",
    "ReadShort": "seed 1",
    "RotPasses": "seed 14",
    "PlacePasses": "device lib checksum::tests::finds_every_single_bit",
    "StalePasses": "seed 28",
    "JournalInPlace": "die-loss-seed 801",
    "JournalNextDoor": "die-loss-seed 158",
    "NoJournal": "seed 172",
    "SeatReused": "die-loss-seed 40",
    "ParityUnawaited": "die-loss-seed 11",
    "OpenStripeLeft": "seed 2",
    "LossForgotten": "media flashback a_program_that_cost_a_die_is_answered_when_the_loss_is_on_record",
    "ParitySkew": "seed 2",
    "OldCopyServes": "device set_aside an_old_copy_of_a_member_is_set_aside",
    "StaleDie": "die-loss-seed 8",
    "NoSettle": "seed 2",
    "JournalUnread": "seed 38",
    "LinearChecksum": "seed 32",
    "StaleSolved": "seed 32",
    "HealedInPlace": "device faults every_fault_heals_with_parity",
    "HealedShifted": "seed 3",
    "RebuildSkipsStripe": "device faults a_rebuilt_die_serves",
    "RebuildUnchecked": "device faults a_die_is_rebuilt_from_what_is_right",
    "PaddingLeft": "device faults a_die_is_rebuilt_with_what_nobody_reads_any_more",
    "RebuildLiveOnly": "device faults a_die_is_rebuilt_with_what_nobody_reads_any_more",
    "PinEmptiedLeft": "ftl order a_leb_that_was_emptied_is_kept_for_who_pins_it",
    "RebuildDeadLeft": "device jobs a_rebuilt_die_holds_what_a_power_cut_brings_back",
    "RebuildTrustsBlank": "device faults a_die_is_rebuilt_with_the_log",
    "ScrubBlind": "device faults a_scrub_tells_without_parity",
    "ScrubParityBlind": "device faults a_scrub_makes_room_for_the_next_fault",
    "NonceWithoutSequence": "seed 2",
    "UnboundAddress": "device lib crypt::cipher::tests::what_is_sealed_opens_only_as_it_was",
    "ErasedOnce": "device erase an_erase_that_is_cut_leaves_no_trace",
    "ResumedTooFar": "device erase an_erase_goes_on_where_it_was",
    "EraseUnmarked": "device erase an_erase_that_is_cut_leaves_no_trace",
    "StagedSlotForgotten": "kill-seed 1",
    "StagedTrimsForgotten": "kill-seed 7",
    "StagedClearedEarly": "kill-seed 3",
    "StagedOverNewer": "device staged nothing_is_written_over_what_is_newer",
    "StagedEpochIgnored": "device lib staging::tests::only_what_the_last_attach_left_counts",
    "StagedDieLeft": "killed-die-seed 5",
    "StagedSurvivesCut": "device drills power::what_was_not_flushed_is_lost_when_it_is_dropped",
    "TwinTaken": "device lib identity::tests::an_identity_is_claimed_once",
    "IdentityUnannounced": "device lib identity::tests::a_cut_leaves_either_identity",
    "FlushUnawaited": "export vhost a_flush_is_answered_when_it_is_done_and_not_before",
    "ReplaySkips": "export vhost requests_are_carried_out_again_in_the_order_in_which_they_were_taken",
    "ReplayReversed": "export vhost requests_are_carried_out_again_in_the_order_in_which_they_were_taken",
    "TakenUnnoted": "export vhost what_is_under_way_stands_in_the_region_and_what_is_answered_does_not",
    "ReadShifted": "export vhost segments_of_any_size_carry_a_request",
    "OutsideTaken": "export vhost data_outside_of_memory_are_an_error_of_their_request_only",
    "BeyondTheEnd": "lab traces places_are_on_the_device_and_on_its_sectors",
    "TraceTwice": "lab traces several_devices_share_a_trace",
    "SteadyArrivals": "trace lib generate::mail_server::tests::it_has_the_traits_that_were_published_and_those_that_are_assumed",
    "LateStart": "lab queueing an_open_loop_that_is_too_fast_says_so_and_counts_from_the_intended_start",
    "ManyNines": "lab lib stats::percentile::tests::nines_need_samples",
    "StumpCounts": "lab lib steady::tests::a_stump_at_the_end_weighs_what_it_lasted",
    "FallingIsSteady": "lab lib steady::tests::a_slope_of_exactly_ten_per_cent_is_steady",
    "NoiseDiffers": "lab lib run::compare::tests::what_noise_explains_is_told_from_what_it_does_not",
    "BegunIsDone": "lab runs a_run_killed_at_any_line_comes_to_the_same_results",
    "SupersededGoesOn": "export nvme late::a_write_that_comes_late_never_lands_after_the_new_association",
    "QueueOutlivesReset": "export nvme authentication::a_queue_that_is_still_proving_itself_ends_with_a_reset",
    "DigestUnchecked": "export nvme transfers::a_wrong_data_digest_fails_its_command_and_writes_nothing",
    "CompareForgiven": "export nvme fused::the_write_is_carried_out_only_where_the_comparison_holds",
    "FlushForgotten": "export nvme commands::what_was_flushed_is_there_after_a_power_cut",
    "LastRangeKept": "export nvme commands::dataset_management_takes_256_ranges_and_forgets_each",
    "ProofNotCompared": "nvme lib auth::tests::a_host_with_another_secret_stays_out",
    "PublishedAnywhere": "report pages published_figures_stand_beside_what_was_asked_alike_and_nothing_else",
}


class Programs:
    """The simulator and the tests, built with all defects in them, and all of them off."""

    def __init__(self) -> None:
        self.tests: dict[tuple[str, str], str] = {}
        self.simulator = ""
        self.listers: list[str] = []
        chosen = [word for name in BUILT for word in ["-p", name]]
        chosen += ["--features", ",".join(FEATURES)]
        # Nothing but what is named above: the tests of other targets would take longer to build than these to run.
        targets = {words[1] for words in map(str.split, KILLED_BY.values()) if words[0] in BUILT} - {"lib"}
        tests = ["--lib", *(word for name in sorted(targets) for word in ["--test", name])]
        self.build(["test", "--no-run", *chosen, *tests])
        self.build(["build", *chosen, "--bin", "vsl-sim", "--example", "nvme_mutants", "--example", "trace_mutants"])

    def build(self, words: list[str]) -> None:
        """Builds something with cargo, and notes what came of it."""
        command = ["cargo", *words, "--locked", "--message-format=json"]
        built = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        if built.returncode != 0:
            raise SystemExit(f"{', '.join(BUILT)} could not be built with their defects")
        for line in built.stdout.splitlines():
            message = json.loads(line)
            if message.get("reason") != "compiler-artifact" or not message.get("executable"):
                continue
            package = re.search(r"(?:crates|testkit)/(\w+)", message["package_id"])
            name, kind = message["target"]["name"], message["target"]["kind"]
            if message["profile"]["test"]:
                target = "lib" if "lib" in kind else name
                self.tests[(package.group(1) if package else "", target)] = message["executable"]
            elif name == "vsl-sim":
                self.simulator = message["executable"]
            elif name.endswith("_mutants") and "example" in kind:
                self.listers.append(message["executable"])

    def commands(self, suite: str) -> list[list[str]]:
        """What to run for a suite, one after another until something is found."""
        kind, *words = suite.split()
        if kind in SEEDS:
            how = [self.simulator, "--threads", "1", *SEEDS[kind]]
            return [[*how, "--from", words[0], "--seeds", "1"], [*how, "--from", "1", "--seeds", str(FURTHER_SEEDS)]]
        if kind == "exhaustive":
            return [[self.simulator, "--threads", "1", "--exhaustive", words[0], "--recovered", "1"]]
        package, target, name = kind, words[0], words[1]
        if (package, target) not in self.tests:
            raise SystemExit(f"{suite}: {package} has no tests called {target}")
        return [[self.tests[(package, target)], "--exact", name, "--nocapture"]]

    def defects(self) -> dict[str, str]:
        """All names, and what is wrong with each."""
        said = ""
        for command in [[self.simulator, "--list-mutants"], *([lister] for lister in self.listers)]:
            said += subprocess.run(command, capture_output=True, text=True, check=True).stdout
        return dict(line.split("\t") for line in said.splitlines())


SEEDS = {"seed": [], "encrypted-seed": ["--encrypted"], "die-loss-seed": ["--die-loss"],
         "kill-seed": ["--kills"], "killed-die-seed": ["--die-loss", "--kills"]}


def run(command: list[str], defect: str | None, seconds: float) -> tuple[int | None, str]:
    """Runs a suite with a defect switched on: its exit status, or nothing when it took too long; and its last words."""
    environment = {name: value for name, value in os.environ.items() if name != VARIABLE}
    if defect:
        environment[VARIABLE] = defect
    try:
        done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=seconds, cwd=ROOT)
    except subprocess.TimeoutExpired:
        return None, "not within its time"
    text = done.stdout.decode(errors="replace")
    return done.returncode, text.strip().splitlines()[-1] if text.strip() else ""


def hunt(programs: Programs, defect: str, suite: str) -> tuple[str, float, str, bool]:
    """Whether a defect is found: by what, after how long."""
    began = time.monotonic()
    last = ""
    for command in programs.commands(suite):
        left = LIMIT - (time.monotonic() - began)
        status, last = run(command, defect, max(left, 0.1))
        if status is None:
            break
        if status != 0:
            found = re.match(r"seed (\d+):", last)
            by = f"{suite.split()[0]} {found.group(1)}" if found else suite
            return by, time.monotonic() - began, last, True
    return suite, time.monotonic() - began, last, False


def main() -> int:
    """Gives the exit status: 0 if every defect was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="only these defects")
    parser.add_argument("--markdown", type=Path, help="write the table to this file")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    arguments = parser.parse_args()
    programs = Programs()
    defects = programs.defects()
    unknown = set(KILLED_BY) ^ set(defects)
    if unknown:
        raise SystemExit(f"in {Path(__file__).name} or in mutant.rs of ftl, trace or nvme, but not in both: {', '.join(sorted(unknown))}")
    wanted = arguments.names or list(defects)
    with ThreadPoolExecutor(arguments.jobs) as pool:
        # A suite that fails anyway would find everything.
        sound = sorted({KILLED_BY[name] for name in wanted})
        for suite, (status, last) in zip(sound, pool.map(lambda s: run(programs.commands(s)[0], None, LIMIT), sound)):
            if status != 0:
                raise SystemExit(f"{suite} finds something without any defect: {last}")
        rows = []
        for name, row in zip(wanted, pool.map(lambda name: hunt(programs, name, KILLED_BY[name]), wanted)):
            by, seconds, last, found = row
            rows.append((name, *row))
            print(f"{'ok    ' if found else 'FAILED'} {name:<22} {by:<60} {seconds:5.1f} s  {defects[name]}", flush=True)
            if not found or len(wanted) < 4:
                print(f"       {last[:300]}")
    found = sum(row[4] for row in rows)
    slowest = max(row[2] for row in rows)
    if arguments.markdown:
        lines = ["| planted defect | what it does | found by | s |", "|---|---|---|---:|"]
        lines += [f"| `{name}` | {defects[name]} | `{by}` | {seconds:.1f} |" for name, by, seconds, _, _ in rows]
        arguments.markdown.write_text("\n".join(lines) + "\n")
    print(f"\nplanted defects: {found} of {len(rows)} found, the slowest in {slowest:.1f} s")
    return 0 if found == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
