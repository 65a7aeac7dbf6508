"""A device of several files is attached by one of them, `scan` lists what is there, a copy among the files is noticed, and a file that somebody deletes raises an alert."""

import json
import os
import shutil

from harness import MIB, Device, World, check, equal
from harness.libnbd import connect

OURS = True
SIZE = 64 * MIB


def run(world: World) -> None:
    world.servers.up()
    place = world.dir / "place"
    place.mkdir()
    paths = [place / f"part{number}.vsl" for number in range(3)]
    world.vsl("create", *paths, "--size", SIZE, "--label", "whole")
    world.vsl("create", place / "single.vsl", "--size", SIZE)
    os.mkfifo(place / "fifo")
    (place / "text").write_text("no device\n")
    found = json.loads(world.vsl("scan", place, "--json").out)["devices"]
    equal(sorted((len(device["paths"]), device["files"]) for device in found), [(1, 1), (3, 3)], "devices found")
    said = world.vsl("scan", place).out
    check(all(str(path) in said for path in paths) and ", 3 files" in said and '"whole"' in said, said)

    # By one of them, whichever; a link in the directory is no second file.
    (place / "link.vsl").symlink_to(paths[0])
    world.vsl("attach", paths[1], "--name", "whole")
    device = Device("whole", paths[1], SIZE, world.servers.uri("whole"))
    connect(device).pwrite(b"x" * 4096, 0)
    equal(set(shown(world)["paths"]), set(map(str, paths)), "files of the device")
    world.vsl("down")
    world.servers.up()
    equal(bytes(connect(device).pread(4096, 0)), b"x" * 4096, "what was written, after the service started again")

    # A file in use that is deleted serves until the detach: somebody must learn of it before.
    aside = world.dir / "aside"
    os.link(paths[2], aside)
    paths[2].unlink()
    check(str(paths[2]) in shown(world)["health"] and shown(world)["vanished"] == [str(paths[2])], f"{shown(world)}")
    alerts = lambda: {alert["rule"] for alert in json.loads(world.vsl("alerts", "--json").out)["alerts"]}  # noqa: E731
    world.wait(lambda: "vanished" in alerts(), "the alert of a file that was deleted")
    equal(bytes(connect(device).pread(4096, 0)), b"x" * 4096, "what is read of a deleted file")
    os.link(aside, paths[2])
    world.wait(lambda: "vanished" not in alerts(), "the alert to be over once the file is back")
    equal(shown(world)["health"], "healthy", "health with the file back")
    world.vsl("detach", "whole", "--force")

    # Two that say that they are the same file: nobody guesses.
    shutil.copyfile(paths[2], place / "copy.vsl")
    said = world.vsl("attach", paths[0], "--name", "whole", fails=True).text
    check("copy.vsl" in said and paths[2].name in said and "both say" in said, said)
    world.vsl("attach", *paths, "--name", "whole")
    world.vsl("detach", "whole")
    (place / "copy.vsl").unlink()
    said = world.run("nbdinfo", "--size", "--", "[", world.vsl_path, "serve", paths[0], "]").out
    equal(said.strip(), str(SIZE), "the size that serve gives by one of the files")


def shown(world: World) -> dict:
    """What `vsl status` says of the device."""
    [shown] = [device for device in world.servers.status()["devices"] if device["name"] == "whole"]
    return shown
