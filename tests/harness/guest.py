"""Guests: virtual machines with an unmodified Linux kernel, as clients of what a test serves.

`scripts/install-guest.sh` prepares kernels and programs. A guest runs scripts that the test sends, several at a time, while the test
does things on the host. In the guest the host's loopback is 10.0.2.2.
"""

import base64
import json
import re
import shutil
import signal
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from harness.check import Failed, check
from harness.servers import Device
from harness.world import MIB, World

HOST = "10.0.2.2"
DISTRIBUTION = "distribution"  # the kernel of this machine's Debian
BACKPORTS = "backports"  # a newer one, which may be missing
DEBIAN = "debian"  # a whole Debian, with its own initrd (scripts/install-debian.sh)
BOOT_SECONDS = 90
# A kernel patches its code while it boots, and QEMU 7.2's emulation of two processors may run half of a patch: now and then the
# kernel then stops, with an invalid opcode or without a word, before any of our programs runs or a disk's driver is loaded.
BOOTS = 3
# So long a kernel may take until our first process runs: 10 s here, more where much else does.
KERNEL_SECONDS = 45
KERNEL = "Linux version "  # its first line
FIRST_PROCESS = "guest: the first process runs"  # as tests/guest/init says
# What a kernel says when a request failed, or worse.
ERRORS = "I/O error|critical .* error|EXT4-fs.*(error|warning)|XFS.*([Cc]orrupt|[Ee]rror)|BTRFS (error|warning)|BUG:|Call Trace|blocked for more"

# The flag of a read ahead in that log (REQ_RAHEAD).
READ_AHEAD = 1 << 19


@dataclass
class Script:
    """What runs in a guest."""

    text: str
    ended: threading.Event = field(default_factory=threading.Event)
    code: int | None = None  # stays so where the guest ended first
    said: str = ""


def newer_kernel(world: World, what: str) -> bool:
    """Whether the newer kernel is there; if not, the runner shows which part of a test was not checked, and why."""
    missing = _directory(world) / f"{BACKPORTS}.missing"
    if not missing.exists():
        return True
    print(f"figure: NOT CHECKED: {what}: {missing.read_text().strip()}", flush=True)
    return False


def free_port() -> int:
    """A TCP port of the loopback that nobody uses."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def fio_command(path: str, *options: str) -> str:
    """One fio job with direct I/O in a guest, its report in /tmp/fio.json.

    Without figures of the disk: fio 3.33 frees them twice when the paths to a drive come and go.
    """
    words = [
        "fio", "--name=job", f"--filename={path}", "--ioengine=libaio", "--direct=1", "--output-format=json", "--output=/tmp/fio.json",
        "--group_reporting", "--disk_util=0", "--verify_fatal=1", "--exitall_on_error=1", *options,
    ]
    return " ".join(words)


def image_disk(image: Path, serial: str) -> list[object]:
    """An image as a disk that cannot be written."""
    return ["-drive", f"if=none,id={serial},file={image},format=raw,readonly=on", "-device", f"virtio-blk-pci,drive={serial},serial={serial}"]


def nbd_disk(device: Device, serial: str) -> list[str]:
    """The device as a virtio disk, whose requests QEMU keeps for five minutes while nobody answers."""
    return [
        "-blockdev",
        f"driver=nbd,node-name={serial},server.type=unix,server.path={device.socket},export={device.name},reconnect-delay=300,discard=unmap",
        "-device", f"virtio-blk-pci,drive={serial},serial={serial},logical_block_size=4096,physical_block_size=4096",
    ]


def programs(world: World) -> Path:
    """The image of the disk with the programs of a guest."""
    return _directory(world) / "programs.img"


def _directory(world: World) -> Path:
    return world.tools.parent / "guest"


def debian_image(world: World) -> Path:
    """The root file system of the whole Debian."""
    return _directory(world) / "debian.img"


class Guest:
    """A virtual machine; it ends with its `with` block."""

    def __init__(self, world: World, kernel: str, *options: object, programs_disk: list[object] | None = None,
                 files: list[Path] | None = None, memory: int = 768, cpus: int = 2, name: str = "guest", append: str = "",
                 boot_seconds: float = BOOT_SECONDS, machine: "Callable[[Guest, Path], list[object]] | None" = None) -> None:
        """Boots it; `options` are for QEMU, and so is `programs_disk`, which gives it the disk with its programs; `memory` in MiB.

        It finds copies of `files` in /files. `append` goes to the kernel's command line. `machine` gives another command than QEMU's, with
        the socket of the guest's agent.
        """
        self.world, self.name = world, name
        kernels = _directory(world)
        self.kernel, self.initrd = kernels / f"{kernel}.kernel", kernels / f"{kernel}.initrd"
        self.append = f"console=ttyS0 loglevel=6 panic=-1 oops=panic {append}"
        check((kernels / f"{kernel}.kernel").exists(), f"{kernels} has no guest kernel: scripts/install-guest.sh prepares it, or give --tools")
        self.version = (kernels / f"{kernel}.version").read_text().strip()
        self.console = world.dir / f"{name}-console.log"
        self.tells = kernel != DEBIAN  # that its first process runs
        self.scripts: dict[int, Script] = {}
        self.lock = threading.Lock()
        self.numbers = 0
        disks = [*(image_disk(programs(world), "programs") if programs_disk is None else programs_disk), *(image_disk(self._pack(files), "files") if files else [])]
        agent = world.dir / f"{name}.agent"
        command = machine(self, agent) if machine else self._qemu(agent, memory, cpus, *disks, *options)
        began = time.monotonic()
        for _ in range(BOOTS):
            if self._boots(agent, command, boot_seconds):
                break
            in_time, stuck = self.scripts[0].ended.is_set(), self._is_in_kernel()
            self.close()
            self.reader.join()
            if not in_time and not stuck:
                raise Failed(f"Linux {self.version} did not boot within {boot_seconds} s; the end of its console: {self._console()[-2000:]}")
            print(f"figure: Linux {self.version} stopped while it booted, and is booted again", flush=True)
        else:
            raise Failed(f"Linux {self.version} did not boot; the end of its console: {self._console()[-2000:]}")
        print(f"guest {name}: Linux {self.version} is up after {time.monotonic() - began:.1f} s", flush=True)

    def _boots(self, agent: Path, command: list[object], seconds: float) -> bool:
        """Starts the machine, and waits until the guest greets."""
        agent.unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(agent))
            listener.listen(1)
            self.process = self.world.start(*command, log=f"{self.name}-qemu.log")
            listener.settimeout(BOOT_SECONDS)
            try:
                self.agent, _ = listener.accept()
            except TimeoutError:
                raise Failed(f"QEMU did not start: {(self.world.dir / f'{self.name}-qemu.log').read_text()}") from None
        # The guest greets as if it had run a script of number 0.
        up = self.scripts[0] = Script("")
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        up.ended.wait(min(seconds, KERNEL_SECONDS))
        if not self._is_in_kernel():
            up.ended.wait(seconds)
        return up.code is not None

    def _is_in_kernel(self) -> bool:
        """Whether its kernel runs and no process yet."""
        said = self._console()
        return self.tells and KERNEL in said and FIRST_PROCESS not in said

    def _qemu(self, agent: Path, memory: int, cpus: int, *options: object) -> list[object]:
        """QEMU's command."""
        return [
            "qemu-system-x86_64", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
            "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", cpus,
            # Memory that a vhost-user back end can map.
            "-m", memory, "-object", f"memory-backend-memfd,id=memory,size={memory}M,share=on", "-machine", "memory-backend=memory",
            "-kernel", self.kernel, "-initrd", self.initrd, "-append", self.append, "-serial", f"file:{self.console}",
            "-netdev", "user,id=net", "-device", "virtio-net-pci,netdev=net",
            "-device", "virtio-serial-pci", "-chardev", f"socket,id=agent,path={agent}", "-device", "virtserialport,chardev=agent,name=agent",
            *options,
        ]

    def _pack(self, files: list[Path]) -> Path:
        """An image with these files."""
        image, directory = self.world.dir / f"{self.name}-files.img", self.world.dir / f"{self.name}-files"
        directory.mkdir()
        for path in files:
            shutil.copy(path, directory)
        size = sum(path.stat().st_size for path in files) // MIB * 5 // 4 + 8
        self.world.run("mke2fs", "-q", "-t", "ext4", "-b", 4096, "-O", "^has_journal", "-m", 0, "-d", directory, image, f"{size}M")
        return image

    def __enter__(self) -> "Guest":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Switches it off, as by its plug."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.agent.close()

    def start(self, script: str) -> Script:
        """Starts a script (of the shell, which ends at the first error) beside the test."""
        with self.lock:
            self.numbers += 1
            number, started = self.numbers, Script(script)
            self.scripts[number] = started
            print(f"{self.name}[{number}]$ {script}", flush=True)
            self.agent.sendall(f"{number} {base64.b64encode(script.encode()).decode()}\n".encode())
        return started

    def finish(self, script: Script, timeout: float = 60, fails: bool | None = False) -> str:
        """Waits for a script and gives what it said; `fails` as for `World.run`."""
        if not script.ended.wait(timeout):
            raise Failed(f"in the guest: still running after {timeout} s: {script.text}\n{self._dmesg_if_it_answers()}")
        check(script.code is not None, f"the guest ended during: {script.text}; the end of its console: {self._console()[-2000:]}")
        if fails is not None:
            check((script.code != 0) == fails, f"in the guest: exit {script.code}: {script.text}\n{script.said[-4000:]}")
        return script.said

    def run(self, script: str, timeout: float = 60, fails: bool | None = False) -> str:
        """Runs a script to its end and gives what it said."""
        return self.finish(self.start(script), timeout, fails)

    def read(self, path: str) -> str:
        """A small file, such as those of sysfs."""
        return self.run(f"cat {path}").strip()

    def errors(self) -> list[str]:
        """Lines of the kernel's log about failed requests and worse; not about reads ahead, which are not repeated and which nobody waits for."""
        lines = self.run(f"dmesg | grep -E '{ERRORS}' || true").splitlines()
        return [line for line in lines if not ((flags := re.search(r"\(READ\) flags (0x[0-9a-f]+)", line)) and int(flags[1], 16) & READ_AHEAD)]

    def disk(self, serial: str) -> str:
        """The virtio disk with that serial number."""
        return self.run(f"for disk in /sys/block/vd*; do [ $(cat $disk/serial) != {serial} ] || echo /dev/${{disk##*/}}; done").strip()

    def fio(self, path: str, *options: str, timeout: float = 100) -> dict:
        """Runs one fio job on a file or device and gives its report; fio fails when what it reads back is not what it wrote."""
        self.run(fio_command(path, *options), timeout)
        return json.loads(self.run("cat /tmp/fio.json"))["jobs"][0]

    def _dmesg_if_it_answers(self) -> str:
        """The end of the kernel's log, for a failure's message."""
        asked = self.start("dmesg | tail -n 20")
        return asked.said if asked.ended.wait(10) else "(the guest does not answer)"

    def _console(self) -> str:
        return self.console.read_text(errors="replace") if self.console.exists() else ""

    def _read(self) -> None:
        """Takes the answers as they come: number, exit status and length in a line, then what was said."""
        try:
            with self.agent.makefile("rb") as answers:
                while line := answers.readline():
                    number, code, length = (int(word) for word in line.split())
                    said = answers.read(length).decode(errors="replace")
                    script = self.scripts[number]
                    script.code, script.said = code, said
                    print(f"{self.name}[{number}]: {said[-1500:]}[exit {code}]", flush=True)
                    script.ended.set()
        except (OSError, ValueError) as error:
            print(f"{self.name}: {error!r}", flush=True)
        # It is gone: nobody waits for it any more.
        with self.lock:
            for script in self.scripts.values():
                script.ended.set()
