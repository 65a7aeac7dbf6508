"""The compiled part of the package. Addresses and counts are in sectors of `Device.sector_bytes` bytes."""

from collections.abc import Callable, Iterator, Sequence
from os import PathLike
from types import TracebackType
from typing import Literal, Self, final

from typing_extensions import Buffer

__version__: str

class Error(Exception):
    """What a device answered instead of success."""

class OpenError(Error):
    """There is no device to use."""

class InvalidRequest(Error):
    """A request that cannot be: nothing was changed."""

class ReadOnly(Error):
    """The device takes no writes."""

class NoSpace(Error):
    """No space is left under the device."""

class PowerOff(Error):
    """A drill has cut the device's power."""

class Closed(Error):
    """The device is not open any more, or the connection ended."""

class SimulationError(Error):
    """A model failed a request, and the run ended."""

def run(request: str, progress: Callable[[str, float], object] | None = None) -> str:
    """Runs what a request in JSON asks for, and gives the results as `vsl sim --json` prints them."""

def data_sheet(name: str) -> str:
    """A data sheet in JSON."""

def data_sheets() -> list[str]:
    """The names of all data sheets."""

def named_workload(name: str) -> str:
    """A workload that comes with the package, or a file of one, in JSON."""

def named_workloads() -> list[str]:
    """The names of the workloads that come with the package."""

def protocols() -> list[str]:
    """The names of the protocols that come with the package."""

def protocol_part(shared: str, part: str, attempt: int) -> str:
    """Runs a part of a `ProtocolRun`, of which `shared` is what all have in common: lines for its journal, in JSON."""

@final
class ProtocolRun:
    """A run of a protocol in a directory of its own. Nobody else goes on with it while this is there."""

    def __new__(cls, request: str) -> Self:
        """Begins a run, or goes on with the one that is in the directory."""

    @property
    def shared(self) -> str:
        """What every part needs, in JSON."""

    @property
    def parts(self) -> int:
        """How many parts there are."""

    def pending(self) -> list[tuple[str, int]]:
        """Parts that are not done, and which attempt at each is next."""

    def add(self, lines: str) -> None:
        """Writes down what a part came to."""

    def finish(self) -> bool:
        """Writes down that all is done; whether it is."""

@final
class Table:
    """Figures that data frames and databases take through Arrow's PyCapsule interface, without a copy.

    `polars.DataFrame(table)`, `pyarrow.table(table)`, `pandas.DataFrame.from_arrow(table)`, or in DuckDB `SELECT * FROM table`.
    """

    def __new__(cls, columns: Sequence[tuple[str, Sequence[int | None] | Sequence[float | None] | Sequence[str | None]]]) -> Self:
        """Of columns, each a name and its values: whole numbers, real numbers or texts, any of them `None`."""

    @property
    def column_names(self) -> list[str]:
        """The names of the columns."""

    def __len__(self) -> int:
        """How many rows there are."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The table as a stream in C."""

def create(
    path: str | PathLike[str], bytes: int, *, sector_bytes: int = 4096, label: str = "", drills: bool = False
) -> None:
    """Makes a device of so many bytes in a new file. With `drills`, faults may be put on it by command."""

@final
class Device:
    """A device that is open: in this process, or in a service. Threads may share it; calls release the interpreter's lock."""

    @staticmethod
    def open(*paths: str | PathLike[str], read_only: bool = False, degraded: bool = False) -> Device:
        """Opens the device in a file, or in several. This process has it alone."""

    @staticmethod
    def connect(address: str) -> Device:
        """Connects to a device of a service, at an address as `vsl status DEVICE --field nvme_uri` prints it."""

    @staticmethod
    def memory(bytes: int, *, sector_bytes: int = 4096) -> Device:
        """A throw-away device in memory."""

    @property
    def uuid(self) -> str:
        """What the device is known by."""

    @property
    def sector_bytes(self) -> int:
        """Bytes of a sector."""

    @property
    def sectors(self) -> int:
        """How many sectors there are."""

    @property
    def max_write_bytes(self) -> int:
        """The largest write, and the largest read, bytes. A write is atomic up to this size."""

    @property
    def read_only(self) -> bool:
        """Whether the device takes no writes."""

    def read(self, lba: int, sectors: int = 1) -> memoryview:
        """Reads sectors. The view is of the memory that they were read into: nothing is copied."""

    def read_into(self, lba: int, buffer: Buffer) -> None:
        """Reads as many sectors as a writable buffer has room for."""

    def write(self, lba: int, data: Buffer, *, durable: bool = False) -> None:
        """Writes whole sectors, atomically. The data are not copied, and must not be changed until the call returns."""

    def trim(self, lba: int, sectors: int = 1, *, durable: bool = False) -> None:
        """Forgets sectors: they read as zeros, and do not exist."""

    def batch(
        self, writes: list[tuple[int, Buffer]] = ..., *, trims: list[tuple[int, int]] = ..., durable: bool = False
    ) -> None:
        """Carries out all of these writes and trims, or nothing, whatever fails. No two of them may touch the same sector.

        Together they take up to `max_write_bytes`; a trim is its first sector, and how many.
        """

    def flush(self) -> None:
        """Makes everything durable that was answered before."""

    def exists(self, lba: int) -> bool:
        """Whether a sector was written, and not trimmed since."""

    def ranges(self, start: int = 0, stop: int | None = None) -> Iterator[range]:
        """The ranges of sectors that exist, in order."""

    def cut_power(
        self,
        *,
        at_write: int | None = None,
        at_program: int | None = None,
        unsynced: Literal["random", "drop", "keep", "torn"] = "random",
        seed: int | None = None,
    ) -> str:
        """Cuts the power of a drill device: now, with the n-th write from now, or while the media are written to for the n-th time.

        `unsynced` says what becomes of what no flush covers. Requests raise `PowerOff` until `power_on`.
        """

    def power_on(self) -> None:
        """Switches the device on again, and recovers it from what is on its files."""

    def power_cycle(self) -> str:
        """Cuts the power now, unless it went before, and switches it on again; says what became of what was not flushed."""

    def close(self) -> None:
        """Detaches the device, or hangs up."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None: ...
