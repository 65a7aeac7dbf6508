"""net-snmp's agent tells of the service's devices and health, as the page of integrations says."""

from harness import MIB, World, check
from harness.bare import TREE

OURS = True
SLOW = True
PORT = 20161
AGENT = f"udp:127.0.0.1:{PORT}"
# Of NET-SNMP-EXTEND-MIB, by number: Debian's packages lack the modules that it builds on.
EXTEND = "1.3.6.1.4.1.8072.1.3.2"
COLUMNS = {"OutputFull": "3.1.2", "OutNumLines": "3.1.3", "Result": "3.1.4", "OutLine": "4.1.2"}


def run(world: World) -> None:
    device = world.device(64 * MIB, "db")
    script = TREE / "integrations/snmp/openvsl"
    # The program is found by its name there.
    programs = world.dir / "bin"
    programs.mkdir()
    (programs / "vsl").symlink_to(world.vsl_path.resolve())
    shipped = (TREE / "integrations/snmp/openvsl.conf").read_text()
    settings = world.dir / "snmpd.conf"
    settings.write_text(shipped.replace("/usr/share/openvsl/snmp/openvsl", str(script)) + "rocommunity public 127.0.0.1\n")
    agent = world.start(
        "env", f"PATH={programs}:/usr/sbin:/usr/bin:/bin", f"SNMP_PERSISTENT_DIR={world.dir}", "snmpd", "-f", "-Lo", "-C", "-c", settings, "-p", world.dir / "pid", AGENT, log="snmpd.log"
    )

    def get(column: str, row: str, *line: int, fails: bool | None = False) -> str:
        index = [len(row), *row.encode(), *line]
        asked = f"{EXTEND}.{COLUMNS[column]}.{'.'.join(map(str, index))}"
        return world.run("snmpget", "-v2c", "-cpublic", "-Oqv", "-m", "", AGENT, asked, fails=fails).out.strip()

    world.wait(lambda: get("OutNumLines", "openvsl-devices", fails=None).isdigit() or agent.poll() is not None, "the agent")
    check(get("OutNumLines", "openvsl-devices") == "1", "the number of devices")
    fields = get("OutLine", "openvsl-devices", 1).strip('"').split("\t")
    check(fields[0] == "db" and fields[4] == "attached" and int(fields[7]) == 64 * MIB, str(fields))
    check(get("Result", "openvsl-health") == "0", "the health of a healthy service")
    world.vsl("detach", device.name)
    world.vsl("down")
    world.wait(lambda: get("Result", "openvsl-health") == "1", "the agent to see that the service is gone")
    check("not running" in get("OutputFull", "openvsl-health"), "what the agent says of a service that is gone")
    agent.terminate()
    agent.wait(30)
