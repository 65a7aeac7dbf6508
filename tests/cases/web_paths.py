"""An operator chooses no place for new files: recordings go below the state directory, witnesses and replacements elsewhere are for administrators; and no path below a host hides another."""

import http.client
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from harness import MIB, World, check, equal
from harness.web import Web, up

OURS = True


def run(world: World) -> None:
    web = up(world)
    world.vsl("account", "add", "olga", "--role", "operator", "--no-password")
    key = world.vsl("account", "key", "olga").out.strip()
    operator = Web(web.address, {"Authorization": f"Bearer {key}"})
    world.device(64 * MIB)
    files(world, web, operator)
    passed_on(world, operator)
    hosts(world, operator)


def files(world: World, web: Web, operator: Web) -> None:
    """Paths that make files."""
    record = "/devices/disk/record"
    anywhere = world.dir / "anywhere.csv"
    operator.refused(403, "POST", record, {"path": str(anywhere)})
    for name in ["../up.csv", "a/b.csv", "..", ".hidden.csv", "", "a\nb.csv"]:
        operator.refused(400, "POST", record, {"path": name})
    check(not anywhere.exists(), f"{anywhere} was made")
    kept = operator.do("POST", record, {"path": "today.csv"})["path"]
    check("/recordings/today.csv" in kept and kept.startswith(str(world.dir)), kept)
    operator.do("POST", f"{record}/stop")
    operator.refused(400, "POST", record, {"path": "today.csv"})
    predict = {"profile": "iodrive-320-mlc", "workload": "recorded"}
    operator.refused(403, "POST", "/predictions", {**predict, "trace": "/etc/hostname"})
    web.do("POST", record, {"path": str(anywhere)})
    web.do("POST", f"{record}/stop")
    check(anywhere.exists(), "an administrator chooses")
    other = world.dir / "other.vsl"
    world.vsl("create", other, "--size", 64 * MIB)
    witness = world.dir / "elsewhere"
    operator.refused(403, "POST", "/devices", {"path": str(other), "witness": str(witness)})
    check(not witness.exists(), f"{witness} was made")
    operator.do("POST", "/devices", {"path": str(other)})
    operator.refused(403, "POST", "/devices/disk/rebuild", {"die": 0, "onto": "/var/tmp/openvsl-elsewhere"})


def passed_on(world: World, operator: Web) -> None:
    """Neither does an operator choose them by way of a host whose key here is an administrator's."""
    other = world.dir / "other-host"
    environment = ["env", f"OPENVSL_RUNTIME_DIR={other}", f"OPENVSL_STATE_DIR={other}/state"]

    def far(*arguments: object) -> str:
        return world.run(*environment, world.vsl_path, *arguments).out

    try:
        [address] = json.loads(far("up", "--listen", "127.0.0.1:0", "--json"))["web"]
        far("account", "add", "console", "--role", "administrator", "--no-password")
        (world.dir / "far-key").write_text(far("account", "key", "console"))
        far("attach", f"memory:{64 * MIB}", "--name", "there")
        world.vsl("hosts", "add", "b", address, "--key-file", world.dir / "far-key")
        made = world.dir / "made-there.csv"
        operator.refused(403, "POST", "/hosts/b/devices/there/record", {"path": str(made)})
        operator.refused(403, "POST", "/hosts/b/devices", {"path": str(world.dir / "x.vsl"), "witness": str(made)})
        predict = {"profile": "iodrive-320-mlc", "workload": "recorded", "trace": "/etc/hostname"}
        operator.refused(403, "POST", "/hosts/b/predictions", predict)
        check(not made.exists(), f"{made} was made")
        operator.do("POST", "/hosts/b/devices/there/record", {"path": "named.csv"})
    finally:
        world.run(*environment, world.vsl_path, "down", "--force", fails=None)


def hosts(world: World, operator: Web) -> None:
    """Paths that look like others: nothing of them goes out."""
    asked: list[str] = []

    class Host(BaseHTTPRequestHandler):
        """Another host, that notes what it is asked."""

        def answer(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(b"{}")

        do_GET = do_POST = answer

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Host)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        (world.dir / "key").write_text("k" * 64)
        world.vsl("hosts", "add", "h1", f"http://127.0.0.1:{server.server_port}", "--key-file", world.dir / "key")
        for path in [
            "devices/../shutdown", "devices/%2e%2e/shutdown", "devices/%252e%252e/shutdown", "devices/..%2fshutdown",
            "devices//shutdown", "devices/a/..;/shutdown", "devices/./shutdown", "devices/%2E./shutdown", "devices/..%5cshutdown",
        ]:
            status = raw(operator, f"/api/v1/hosts/h1/{path}")
            check(status in (400, 403, 404), f"{path}: {status}")
        equal(raw(operator, "/api/v1/hosts/h1/%73hutdown"), 403, "an escaped letter is the letter")
        out = [path for path in asked if "shutdown" in path]
        equal(out, [], "what an operator got through to the host's shutdown")
        equal(raw(operator, "/api/v1/hosts/h1/devices/my%20disk/detach"), 200, "a plain path")
        check("/api/v1/devices/my%20disk/detach" in asked, f"{asked}")
    finally:
        server.shutdown()


def raw(web: Web, path: str) -> int:
    """The status of a `POST` whose path goes out as it is."""
    connection: http.client.HTTPConnection = web.connection()
    connection.request("POST", path, json.dumps({}), {"Content-Type": "application/json", **web.headers})
    return connection.getresponse().status
