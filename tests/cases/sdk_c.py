"""The C library: a program written for the NVM primitives compiles and runs, and our example works on a file and over a service's socket."""

import re
from pathlib import Path

from harness import MIB, World, check, equal

OURS = True
ROOT_OF_SOURCE = Path(__file__).resolve().parents[2]


def example(language: str) -> str:
    """The example of a language in the SDK's page."""
    [code] = re.findall(rf"^```{language}\n(.*?)^```$", (ROOT_OF_SOURCE / "docs/sdk.md").read_text(), re.DOTALL | re.MULTILINE)
    return code


def run(world: World) -> None:
    libraries = world.vsl_path.parent
    world.run(ROOT_OF_SOURCE / "scripts/install-sdk.sh", libraries, world.dir / "installed")
    installed = world.dir / "installed"
    flags = world.run("env", f"PKG_CONFIG_PATH={installed}/lib/pkgconfig", "pkg-config", "--cflags", "--libs", "openvsl").out.split()

    def build(source: Path, *how: str) -> Path:
        program = world.dir / (source.stem + "".join(how))
        world.run("cc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE", "-o", program, source, *how, *flags, f"-Wl,-rpath,{installed}/lib")
        return program

    primitives = build(ROOT_OF_SOURCE / "tests/programs/primitives.c")
    equal(world.run(primitives, world.dir / "primitives.vsl").out, "all as it should be\n", "what the program says")
    # C++ reads the header, too.
    source = world.dir / "header.cc"
    source.write_text("#include <nvm/nvm_primitives.h>\nint main() { return openvsl_error() == nullptr; }\n")
    world.run("c++", "-Wall", "-Werror", "-o", world.dir / "header", source, *flags)
    world.run("man", "--warnings", "-l", installed / "share/man/man3/openvsl.3")

    ledger = build(ROOT_OF_SOURCE / "sdk/c/examples/ledger.c")
    world.vsl("create", world.dir / "ledger.vsl", "--size", 64 * MIB)
    equal(world.run(ledger, world.dir / "ledger.vsl", 1, 2, 500).out, "-500 500\n", "balances in this process")
    page = world.dir / "page.c"
    page.write_text(example("c"))
    world.run(build(page))
    world.servers.up()
    world.vsl("attach", "ledger.vsl")
    refused = world.run(ledger, "ledger.vsl", 1, 2, 500, fails=True).err
    check("ledger.vsl" in refused, f"a device that the service has is opened: {refused}")
    address = world.vsl("status", "ledger", "--field", "nvme_uri").out.strip()
    equal(world.run(ledger, address, 2, 3, 200).out, "300 200\n", "balances over the socket")
    beyond = world.run(ledger, address, 2, 1 << 40, 200, fails=True).err
    check("do not lie on the device" in beyond, beyond)
