"""Databases in a guest whose disk is a device with blocks of 16 KiB over NVMe/TCP; the guest is killed, and the device's power may go with it."""

from __future__ import annotations

import random
import shlex
import shutil
import signal
import tarfile
import threading
from pathlib import Path

from harness import nvme
from harness.check import check
from harness.databases import Damaged, Database, MariaDb, Postgres
from harness.guest import BACKPORTS, Guest, Script, free_port, image_disk, programs
from harness.world import KIB, MIB, World

BLOCK = 16 * KIB
SIZE = 1024 * MIB
# Where the guest has the device.
MOUNT = "/db"
# What a guest's network calls the guest.
GUEST = "10.0.3.15"
# What a server needs besides its libraries: directories of this machine that the guest has at the same place.
SHARED = {"mariadb": ["/usr/share/mysql"], "postgres": ["/usr/share/postgresql", "/usr/lib/postgresql", "/usr/share/zoneinfo"]}


class GuestDisk:
    """A guest with a database's programs, and a drill device that it has mounted."""

    def __init__(self, world: World, name: str, port: int) -> None:
        """`port` is where the service listens for NVMe/TCP."""
        self.world, self.name, self.port = world, name, port
        world.vsl("create", world.dir / f"{name}.vsl", "--size", SIZE, "--drills")
        world.vsl("attach", world.dir / f"{name}.vsl", "--name", name)
        world.vsl("config", name, "nvme-block", "16KiB")
        world.vsl("detach", name)
        world.vsl("attach", world.dir / f"{name}.vsl", "--name", name)
        self.subsystem = nvme.nqn(world, name)
        self.image = world.dir / f"{name}-programs.img"
        self.guest: Guest | None = None
        self.with_power, self.is_off = False, False
        self.seed = 0
        self.cuts = 0
        self.lock = threading.Lock()
        self.timer = threading.Timer(0, lambda: None)

    def pack(self, server: Path) -> None:
        """Makes the disk with the programs: what every guest has, and the server."""
        usr = self.world.dir / f"{self.name}-usr"
        usr.mkdir()
        self.world.run("debugfs", "-R", f"rdump / {usr}", programs(self.world))
        for shared in [Path(shared) for shared in SHARED[self.name]]:
            # Its /usr/lib is a link to /usr/lib64.
            shutil.copytree(shared, usr / str(shared.relative_to("/usr")).replace("lib/", "lib64/", 1), symlinks=True)
        binary = usr / "sbin" / server.name
        if not server.is_relative_to("/usr/lib"):
            binary.parent.mkdir(exist_ok=True)
            shutil.copy(server, binary)
        modules = [path for shared in SHARED[self.name] for path in Path(shared).rglob("*.so")]
        for path in [server, *modules]:
            for line in self.world.run("ldd", path).out.splitlines():
                library = next((word for word in line.split() if word.startswith("/")), None)
                if library and not (usr / "lib64" / Path(library).name).exists():
                    shutil.copy(library, usr / "lib64" / Path(library).name)
        size = sum(path.lstat().st_size for path in usr.rglob("*")) // MIB * 5 // 4 + 32
        self.world.run("mke2fs", "-q", "-t", "ext4", "-b", 4096, "-O", "^has_journal", "-m", 0, "-d", usr, self.image, f"{size}M")
        shutil.rmtree(usr)

    def boot(self, database: Database, inner: int, files: list[Path] | None = None) -> None:
        """Starts the guest with the device connected; `inner` is the server's port in it."""
        self.outer = free_port()
        network = ["-netdev", f"user,id=db,net=10.0.3.0/24,hostfwd=tcp:127.0.0.1:{self.outer}-{GUEST}:{inner}", "-device", "virtio-net-pci,netdev=db"]
        self.guest = Guest(self.world, BACKPORTS, *network, programs_disk=image_disk(self.image, "programs"), files=files, memory=1024,
                           name=f"{self.name}-{self.cuts}")  # fmt: skip
        user = next(line for line in Path("/etc/passwd").read_text().splitlines() if line.startswith(f"{database.user}:"))
        self.guest.run(f"mkdir -p {MOUNT}; echo {shlex.quote(user)} > /etc/passwd; chmod 777 /tmp; mkdir -p /dev/shm; mount -t tmpfs shm /dev/shm; ifconfig eth1 {GUEST} netmask 255.255.255.0 up")
        nvme.connect(self.guest, self.subsystem, self.port)
        self.path = nvme.namespace(self.guest, self.subsystem)

    def settle(self) -> None:
        """What was made so far is to be there after every cut."""
        self.guest.run("sync")

    def cut_at(self, program: int, seed: int) -> None:
        """The guest will be killed; by chance, half of the time, with the device's power. `program` chooses when."""
        self.cuts += 1
        self.seed, self.with_power = seed, random.Random(seed).random() < 0.5
        self.timer = threading.Timer(0.2 + program / 250, self.cut_now)
        self.timer.start()

    def cut_now(self) -> None:
        """Stops the guest at once, so that nobody lives to see the device without power: then its power goes."""
        with self.lock:
            if self.guest is not None and self.guest.process.poll() is None:
                self.guest.process.send_signal(signal.SIGSTOP)
                if self.with_power:
                    self.world.vsl("drill", self.name, "power-cut", "--unsynced", "random", "--seed", self.seed)
                    self.is_off = True
                self.guest.process.kill()

    def kill(self) -> None:
        """As by its plug."""
        if self.guest is not None:
            self.guest.close()
            self.guest = None

    def power_on(self) -> str:
        """Brings the device back; the guest boots with the server."""
        self.timer.cancel()
        self.cut_now()
        self.kill()
        if not self.is_off:
            return "the guest was killed"
        self.is_off = False
        self.world.vsl("drill", self.name, "power-on")
        return "the guest was killed, and the device's power cut"


class InGuest:
    """A database whose server runs in a guest, and whose clients run here."""

    port = 0

    def __init__(self, world: World, disk: GuestDisk) -> None:
        # Writes once: that this is sound is what is tried.
        super().__init__(world, Path(MOUNT) / "data", False)
        self.disk = disk
        self.script: Script | None = None

    def prepare(self) -> None:
        """Makes the database here, and moves it onto the device."""
        [here] = [kind for kind in (MariaDb, Postgres) if isinstance(self, kind)]
        database = here(self.world, self.world.dir / f"{self.name}-data", False)
        self.disk.pack(Path(database.command()[0]))
        database.prepare()
        self.open(database.data)
        packed = self.world.dir / f"{self.name}.tar"
        with tarfile.open(packed, "w") as tar:
            tar.add(database.data, arcname="data")
        self.disk.boot(self, self.port, [packed])
        self.disk.guest.run(f"mkfs.ext4 -q -F -b {BLOCK} {self.disk.path} 2>&1; mount {self.disk.path} {MOUNT}", timeout=180)
        self.disk.guest.run(f"tar -x -C {MOUNT} -f /files/{packed.name}; sync", timeout=180)

    def open(self, data: Path) -> None:
        """Lets clients in that come over a network."""

    def start(self) -> None:
        """Starts the server, in a guest that boots if there is none."""
        if self.disk.guest is None:
            self.disk.boot(self, self.port)
            self.disk.guest.run(f"mount {self.disk.path} {MOUNT}", timeout=120)
        words = shlex.join(str(word) for word in self.command())
        self.script = started = self.disk.guest.start(f"echo $$ > /tmp/server.pid; exec su {self.user} -s /bin/sh -c {shlex.quote(f'exec {words}')} > /dev/ttyS0 2>&1")
        self.world.wait(lambda: started.ended.is_set() or self.succeeds(self.ready()), f"{self.name} to recover", 180)
        if started.ended.is_set():
            raise Damaged(f"{self.name} does not start: {self.disk.guest.console.read_text(errors='replace')[-2000:]}")

    def kill(self) -> None:
        self.disk.kill()

    def stop(self) -> None:
        signal = "TERM" if self.name == "mariadb" else "INT"
        self.disk.guest.run(f"kill -{signal} $(cat /tmp/server.pid)")
        check(self.script.ended.wait(120), f"{self.name} does not stop")
        self.disk.guest.run(f"umount {MOUNT}")


class GuestMariaDb(InGuest, MariaDb):
    """MariaDB, with O_DIRECT."""

    port = 3306

    @property
    def socket(self) -> Path:
        return Path("/tmp/mariadb.sock")

    def command(self) -> list[object]:
        words = [word for word in super().command() if word != "--skip-networking"]
        return [*words, "--skip-grant-tables", "--bind-address=0.0.0.0", f"--port={self.port}", "--innodb-flush-method=O_DIRECT", "--tmpdir=/tmp"]

    def reached(self) -> list[object]:
        return ["-h", "127.0.0.1", "-P", self.disk.outer]

    def has_schema(self) -> bool:
        return True


class GuestPostgres(InGuest, Postgres):
    """PostgreSQL, through the guest's page cache."""

    port = 5432

    def open(self, data: Path) -> None:
        with open(data / "pg_hba.conf", "a") as hba:
            hba.write("host all all 0.0.0.0/0 trust\n")

    def command(self) -> list[object]:
        return [*super().command(), "--listen_addresses=*", "--unix_socket_directories=/tmp"]

    def reached(self) -> list[object]:
        return ["-h", "127.0.0.1", "-p", self.disk.outer]
