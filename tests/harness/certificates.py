"""X.509 certificates for one test, made with openssl under the names that libnbd and nbdkit look for."""

import shutil
from pathlib import Path

from harness.world import World


def make(world: World, name: str = "pki", names: str = "DNS:localhost,IP:127.0.0.1", authority: Path | None = None) -> Path:
    """A directory with a server's and a client's certificate for `names`, their keys, and the authority that signed them: its own, or that of another such directory."""
    directory = world.dir / name
    directory.mkdir()

    def openssl(*arguments: object) -> None:
        world.run("openssl", *arguments)

    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    if authority:
        for part in ["ca-cert.pem", "ca-key.pem"]:
            shutil.copy(authority / part, directory)
    else:
        openssl(
            "req", "-x509", *key, "-days", 2, "-subj", f"/CN=authority of {name}", "-addext", "keyUsage=critical,keyCertSign,cRLSign",
            "-keyout", directory / "ca-key.pem", "-out", directory / "ca-cert.pem",
        )
    for role, use in [("server", "serverAuth"), ("client", "clientAuth")]:
        extensions = directory / f"{role}.ext"
        extensions.write_text(
            "basicConstraints=critical,CA:FALSE\nkeyUsage=critical,digitalSignature\n"
            f"extendedKeyUsage={use}\nsubjectAltName={names}\n"
        )
        request = directory / f"{role}.csr"
        openssl("req", "-new", *key, "-subj", "/CN=localhost", "-keyout", directory / f"{role}-key.pem", "-out", request)
        openssl(
            "x509", "-req", "-in", request, "-CA", directory / "ca-cert.pem", "-CAkey", directory / "ca-key.pem",
            "-CAcreateserial", "-days", 2, "-extfile", extensions, "-out", directory / f"{role}-cert.pem",
        )
    return directory


def self_signed(world: World, name: str) -> Path:
    """A directory with a server's certificate that signed itself, as `openssl req -x509` makes them, and its key."""
    directory = world.dir / name
    directory.mkdir()
    world.run(
        "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", 2,
        "-subj", f"/CN={name}", "-keyout", directory / "server-key.pem", "-out", directory / "server-cert.pem",
    )
    return directory
