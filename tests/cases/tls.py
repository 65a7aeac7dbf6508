"""TLS with x509: offered and forced, a stranger's authority distrusted, client certificates asked for, plaintext before TLS thrown away."""

import errno
import filecmp
import shutil
import socket
import ssl
import struct
from pathlib import Path

import nbd

from harness import MIB, Failed, World, check, equal
from harness.certificates import make
from harness.images import sparse_image
from harness.libnbd import refused
from harness.servers import answers

SIZE = 64 * MIB
OPT_ABORT, OPT_LIST, OPT_STARTTLS = 2, 3, 5
REP_ACK, REP_ERR_TLS_REQD = 1, 0x80000005
REPLY = struct.Struct(">QIII")


def run(world: World) -> None:
    pki, stranger = make(world), make(world, "stranger")
    if world.is_ours:
        world.vsl("create", world.dir / "disk.vsl", "--size", SIZE, "--yes")

    sock = serve(world, "on", pki)
    equal(client(sock, nbd.TLS_DISABLE).get_size(), SIZE, "size without TLS where it is offered")
    check(client(sock, nbd.TLS_REQUIRE, pki).get_tls_negotiated(), "TLS was not negotiated")
    stop(world)

    sock = serve(world, "require", pki)
    refused("GO without TLS where it is forced", errno.ENOTSUP, lambda: client(sock, nbd.TLS_DISABLE))
    equal(plain_option(sock, OPT_LIST), REP_ERR_TLS_REQD, "reply to LIST without TLS where it is forced")
    h = client(sock, nbd.TLS_REQUIRE, pki)
    check(h.get_tls_negotiated() and h.get_structured_replies_negotiated(), "TLS or structured replies were not negotiated")
    h.pwrite(b"\x21" * MIB, MIB, nbd.CMD_FLAG_FUA)
    equal(bytes(h.pread(MIB, MIB)), b"\x21" * MIB, "1 MiB over TLS")
    h.shutdown()
    distrusted(sock, stranger)

    image = sparse_image(world.dir / "image", SIZE, seed=3)
    uri = f"nbds+unix:///?socket={sock}&tls-certificates={pki}"
    world.run("nbdcopy", "--connections=4", image, uri)
    world.run("nbdcopy", "--connections=4", uri, world.dir / "back")
    check(filecmp.cmp(image, world.dir / "back", shallow=False), "an image copied there and back over TLS differs")
    injected(sock, pki)
    stop(world)

    sock = serve(world, "require", pki, verify=True)
    equal(client(sock, nbd.TLS_REQUIRE, pki).get_size(), SIZE, "size for a client with a certificate")
    anonymous = world.dir / "anonymous"
    anonymous.mkdir()
    (anonymous / "ca-cert.pem").write_bytes((pki / "ca-cert.pem").read_bytes())
    try:
        client(sock, nbd.TLS_REQUIRE, anonymous).pread(4096, 0)
        raise Failed("a client without a certificate is served")
    except nbd.Error:
        pass
    equal(client(sock, nbd.TLS_REQUIRE, pki).get_size(), SIZE, "size for a client with a certificate, after one without")
    stop(world)


def serve(world: World, mode: str, pki: Path, verify: bool = False) -> Path:
    """Starts a server of its own with TLS `on` or `require`; with `verify` it asks clients for certificates."""
    sock = world.dir / "tls.sock"
    sock.unlink(missing_ok=True)
    if world.is_ours:
        own = world.dir / f"server-{mode}-{verify}"
        own.mkdir()
        for name in ["server-cert.pem", "server-key.pem"] + ["ca-cert.pem"] * verify:
            shutil.copy(pki / name, own)
        tls = ["--tls", mode, "--tls-certificates", own]
        command = [world.vsl_path, "serve", world.dir / "disk.vsl", "--socket", sock, *tls]
    else:
        tls = [f"--tls={mode}", f"--tls-certificates={pki}"] + ["--tls-verify-peer"] * verify
        command = ["nbdkit", "-f", "-U", sock, *tls, "memory", SIZE]
    world.tls_server = world.start(*command, log="tls.log")
    world.wait(lambda: answers(sock), "the server with TLS")
    return sock


def stop(world: World) -> None:
    """Ends it the polite way."""
    world.tls_server.terminate()
    world.tls_server.wait(timeout=30)


def client(sock: Path, tls: int, pki: Path | None = None) -> nbd.NBD:
    """Connects, with a certificate of its own if there is one."""
    h = nbd.NBD()
    h.set_tls(tls)
    if pki:
        h.set_tls_certificates(str(pki))
    h.connect_unix(str(sock))
    return h


def hello(sock: Path) -> socket.socket:
    """A bare connection, past the greeting."""
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(10)
    s.connect(str(sock))
    greeting = s.recv(18, socket.MSG_WAITALL)
    equal(greeting[:16], b"NBDMAGICIHAVEOPT", "greeting")
    s.sendall(struct.pack(">I", 3))
    return s


def option(number: int) -> bytes:
    """An option without data."""
    return b"IHAVEOPT" + struct.pack(">II", number, 0)


def reply(s: socket.socket) -> tuple[int, int]:
    """The option that is answered, and the answer."""
    head = b""
    while len(head) < REPLY.size:
        part = s.recv(REPLY.size - len(head))
        check(part, "the server hung up instead of answering")
        head += part
    _, number, kind, length = REPLY.unpack(head)
    while length:
        length -= len(s.recv(length))
    return number, kind


def plain_option(sock: Path, number: int) -> int:
    """What an option is answered without TLS."""
    with hello(sock) as s:
        s.sendall(option(number))
        return reply(s)[1]


def distrusted(sock: Path, stranger: Path) -> None:
    """The server's certificate is no good to a client of another authority. (libnbd checks it on TCP only.)"""
    with hello(sock) as s:
        s.sendall(option(OPT_STARTTLS))
        equal(reply(s), (OPT_STARTTLS, REP_ACK), "reply to STARTTLS")
        context = ssl.create_default_context(cafile=str(stranger / "ca-cert.pem"))
        try:
            context.wrap_socket(s, server_hostname="localhost")
        except ssl.SSLCertVerificationError:
            return
    raise Failed("a client trusts a server whose authority it does not know")


def injected(sock: Path, pki: Path) -> None:
    """Plaintext slipped in behind STARTTLS must not be taken for something said under TLS (CVE-2021-3716)."""
    with hello(sock) as s:
        s.sendall(option(OPT_STARTTLS) + option(OPT_LIST))
        equal(reply(s), (OPT_STARTTLS, REP_ACK), "reply to STARTTLS")
        context = ssl.create_default_context(cafile=str(pki / "ca-cert.pem"))
        context.load_cert_chain(pki / "client-cert.pem", pki / "client-key.pem")
        try:
            with context.wrap_socket(s, server_hostname="localhost") as tls:
                tls.sendall(option(OPT_ABORT))
                equal(reply(tls)[0], OPT_ABORT, "the first option answered under TLS")
        except (ssl.SSLError, ConnectionError):
            pass  # Taking it for a broken handshake is right too.
