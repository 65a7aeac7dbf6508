"""Runs a program as the systemd unit would: its user, no capability, no new privileges, its system calls. What mounts and devices the unit hides is not done here."""

import ctypes
import errno
import os
import re
import resource
import subprocess
import sys
from pathlib import Path

import seccomp

# What systemd allows in every filter.
ALWAYS = ["@default"]
PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS, LAST_CAPABILITY = 24, 38, 40


def settings(unit: Path, name: str) -> list[str]:
    """The values of a setting of the unit, in their order."""
    return re.findall(rf"^{name}=(.*)$", unit.read_text(), re.MULTILINE)


def system_calls(unit: Path) -> set[str]:
    """The system calls that the unit allows."""
    allowed: set[str] = set()
    for group in ALWAYS:
        allowed |= members(group)
    for words in settings(unit, "SystemCallFilter"):
        named = {call for word in words.lstrip("~").split() for call in members(word)}
        allowed = allowed - named if words.startswith("~") else allowed | named
    return allowed


def members(word: str) -> set[str]:
    """The system calls of a group, those of the groups in it among them; or the one that is named."""
    if not word.startswith("@"):
        return {word}
    listed = subprocess.run(["systemd-analyze", "syscall-filter", word], capture_output=True, text=True, check=True).stdout
    lines = [line.strip() for line in listed.splitlines()[1:]]
    return {call for line in lines if line and not line.startswith("#") for call in members(line)}


def start(unit: Path, user: int, command: list[str], environment: dict[str, str], log: Path) -> subprocess.Popen:
    """Starts the command under the unit's rules as a user."""
    launcher = [sys.executable, __file__, str(unit), str(user), *command]
    with open(log, "wb") as out:
        return subprocess.Popen(launcher, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out)


def confine(unit: Path, user: int) -> None:
    """Puts this process under the unit's rules."""
    if settings(unit, "CapabilityBoundingSet") != [""] or settings(unit, "NoNewPrivileges") != ["yes"]:
        raise SystemExit(f"{unit}: other capabilities than none, or new privileges: teach this to {__file__}")
    calls = system_calls(unit)
    for name, which in {"LimitMEMLOCK": resource.RLIMIT_MEMLOCK, "LimitNOFILE": resource.RLIMIT_NOFILE}.items():
        [value] = settings(unit, name)
        bound = resource.RLIM_INFINITY if value == "infinity" else int(value)
        hard = resource.getrlimit(which)[1]
        # A container may not raise them: its own bound holds then.
        if hard != resource.RLIM_INFINITY and (bound == resource.RLIM_INFINITY or bound > hard):
            bound = hard
        resource.setrlimit(which, (bound, bound))
    libc = ctypes.CDLL(None)
    for capability in range(LAST_CAPABILITY + 1):
        libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    os.umask(int(settings(unit, "UMask")[0], 8))
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    filtered = seccomp.SyscallFilter(seccomp.ERRNO(errno.EPERM))
    for call in sorted(calls):
        try:
            filtered.add_rule(seccomp.ALLOW, call)
        except RuntimeError:
            # A call of another architecture.
            continue
    filtered.load()


if __name__ == "__main__":
    confine(Path(sys.argv[1]), int(sys.argv[2]))
    os.execv(sys.argv[3], sys.argv[3:])
