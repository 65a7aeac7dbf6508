"""Two services under one console: devices, changes and the stream of the other one through this one; stopped it is shown so, and found again."""

import json

from harness import MIB, World, check, equal
from harness.web import Web, up

OURS = True


def run(world: World) -> None:
    web = up(world)
    other = world.dir / "other"
    environment = ["env", f"OPENVSL_RUNTIME_DIR={other}", f"OPENVSL_STATE_DIR={other}/state"]

    def far(*arguments: object) -> str:
        return world.run(*environment, world.vsl_path, *arguments).out

    try:
        shown = json.loads(far("up", "--listen", "127.0.0.1:0", "--json"))
        [address] = shown["web"]
        far("account", "add", "console", "--role", "operator", "--no-password")
        (world.dir / "key").write_text(far("account", "key", "console"))
        far("attach", f"memory:{64 * MIB}", "--name", "there")
        world.vsl("hosts", "add", "db1", address, "--key-file", world.dir / "key")
        world.wait(lambda: web.get("/hosts")[0]["reachable"], "the other host to be seen", 10)
        [host] = web.get("/hosts")
        equal((host["name"], host["attached"]), ("db1", 1), "the other host")
        check("key" not in json.dumps(host), f"{host}")
        equal([device["name"] for device in web.get("/hosts/db1/devices")], ["there"], "devices there")
        equal(web.do("PUT", "/hosts/db1/devices/there/beacon", {"on": True}), {"on": True}, "a change there")
        equal(web.get("/hosts/db1/devices/there")["beacon"], True, "what was changed there")
        web.refused(403, "POST", "/hosts/db1/devices/there/format", {"confirm": "there"})
        for event, data in web.events("/hosts/db1/stream"):
            if event == "sample" and "there" in data["devices"]:
                break
        web.refused(404, "GET", "/hosts/db2/devices")
        world.vsl("account", "add", "vera", "--role", "viewer", "--no-password")
        key = world.vsl("account", "key", "vera").out.strip()
        vera = Web(web.address, {"Authorization": f"Bearer {key}"})
        equal(len(vera.get("/hosts/db1/devices")), 1, "what a viewer sees there")
        vera.refused(403, "PUT", "/hosts/db1/devices/there/beacon", {"on": False})
        port = address.rstrip("/").rsplit(":", 1)[1]
        far("down", "--force")
        world.wait(lambda: not web.get("/hosts")[0]["reachable"], "the stopped host to be shown as such", 20)
        equal(web.refused(502, "GET", "/hosts/db1/devices")["kind"], "unreachable", "a stopped host")
        far("up", "--listen", f"127.0.0.1:{port}")
        world.wait(lambda: web.get("/hosts")[0]["reachable"], "the host to be found again", 20)
        check("answers" in world.vsl("hosts").out, "vsl hosts")
    finally:
        world.run(*environment, world.vsl_path, "down", "--force", fails=None)
    world.vsl("hosts", "remove", "db1")
    equal(web.get("/hosts"), [], "hosts after the last was removed")
