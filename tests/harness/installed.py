"""What a guest needs to run `vsl` itself."""

from pathlib import Path

from harness.world import World


def with_libraries(world: World) -> list[Path]:
    """The program and the libraries that it is linked with, which a guest finds in /files."""
    listed = world.run("ldd", world.vsl_path).out.split()
    # The development build is twice as large with what only debuggers read, and a guest unpacks it slowly.
    stripped = world.dir / "vsl"
    world.run("strip", "-o", stripped, world.vsl_path)
    return [stripped, *(Path(word) for word in listed if word.startswith("/"))]


# The program in a guest, whose /files has it and its libraries.
VSL = "env OPENVSL_RUNTIME_DIR=/tmp/vsl OPENVSL_STATE_DIR=/tmp/vsl/state LD_LIBRARY_PATH=/files /files/vsl"
