#!/usr/bin/python3
"""Writes an OCI image of static programs, without a daemon: build-image.py OUT.tar VERSION ARCHITECTURE=PROGRAM..."""

import gzip
import hashlib
import io
import json
import os
import sys
import tarfile
from datetime import datetime, timezone

# Architectures as OCI names them.
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
# The user inside; `--user` gives another.
USER = 65532
DIRECTORIES = {"etc": 0o755, "tmp": 0o1777, "usr": 0o755, "usr/bin": 0o755}
# The service's own, and a place for devices.
OWNED = {"data": 0o750, "run/openvsl": 0o700, "var/lib/openvsl": 0o700}
PARENTS = {"run": 0o755, "var": 0o755, "var/lib": 0o755}
LICENSES = "MIT OR Apache-2.0"
EPOCH = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))


def member(name: str, kind: bytes, mode: int, owner: int = 0, size: int = 0) -> tarfile.TarInfo:
    """An entry that says nothing of who wrote it, or when."""
    info = tarfile.TarInfo(name)
    info.type, info.mode, info.uid, info.gid, info.size, info.mtime = kind, mode, owner, owner, size, EPOCH
    return info


def add(archive: tarfile.TarFile, name: str, content: bytes, mode: int = 0o644) -> None:
    """A file."""
    archive.addfile(member(name, tarfile.REGTYPE, mode, size=len(content)), io.BytesIO(content))


def layer(program: str) -> bytes:
    """The root file system, as a tar."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, mode in {**DIRECTORIES, **PARENTS}.items():
            archive.addfile(member(name, tarfile.DIRTYPE, mode))
        for name, mode in OWNED.items():
            archive.addfile(member(name, tarfile.DIRTYPE, mode, USER))
        users = "root:x:0:0:root:/:/sbin/nologin\n" f"openvsl:x:{USER}:{USER}:OpenVSL:/var/lib/openvsl:/sbin/nologin\n"
        add(archive, "etc/passwd", users.encode())
        add(archive, "etc/group", f"root:x:0:\nopenvsl:x:{USER}:\n".encode())
        with open(program, "rb") as file:
            add(archive, "usr/bin/vsl", file.read(), 0o755)
    return out.getvalue()


class Image:
    """An image layout in the making."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}

    def blob(self, kind: str, content: bytes, **more: object) -> dict:
        """Keeps a blob, and describes it."""
        digest = hashlib.sha256(content).hexdigest()
        self.blobs[digest] = content
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest}", "size": len(content), **more}

    def json(self, kind: str, value: dict, **more: object) -> dict:
        """The same of JSON."""
        return self.blob(f"{kind}+json", json.dumps(value, separators=(",", ":"), sort_keys=True).encode(), **more)

    def manifest(self, architecture: str, program: str, version: str) -> dict:
        """One architecture's image."""
        root = layer(program)
        created = datetime.fromtimestamp(EPOCH, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        platform = {"architecture": ARCHITECTURES[architecture], "os": "linux"}
        labels = {
            "org.opencontainers.image.title": "OpenVSL",
            "org.opencontainers.image.version": version,
            "org.opencontainers.image.licenses": LICENSES,
        }
        config = self.json("config.v1", {
            **platform,
            "created": created,
            "config": {
                "User": str(USER),
                "Entrypoint": ["/usr/bin/vsl"],
                "Cmd": ["up", "--foreground"],
                "Env": ["PATH=/usr/bin", "OPENVSL_RUNTIME_DIR=/run/openvsl", "OPENVSL_STATE_DIR=/var/lib/openvsl"],
                "WorkingDir": "/data",
                "Volumes": {"/data": {}, "/run/openvsl": {}, "/var/lib/openvsl": {}},
                "StopSignal": "SIGTERM",
                "Labels": labels,
            },
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(root).hexdigest()}"]},
            "history": [{"created": created, "created_by": "packaging/build-image.py"}],
        })
        packed = self.blob("layer.v1.tar+gzip", gzip.compress(root, 9, mtime=0))
        manifest = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": config, "layers": [packed]}
        return self.json("manifest.v1", manifest, platform=platform)

    def write(self, path: str, version: str, manifests: list[dict]) -> None:
        """The layout, as one tar, as `podman load` and `skopeo copy oci-archive:` take it: one name, `openvsl:VERSION`, for every architecture."""
        kind = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json"}
        named = self.json("index.v1", {**kind, "manifests": manifests}, annotations={"org.opencontainers.image.ref.name": f"openvsl:{version}"})
        index = {**kind, "manifests": [named]}
        with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as archive:
            add(archive, "oci-layout", b'{"imageLayoutVersion":"1.0.0"}')
            add(archive, "index.json", json.dumps(index, sort_keys=True).encode())
            for digest, content in sorted(self.blobs.items()):
                add(archive, f"blobs/sha256/{digest}", content)


def main() -> None:
    """Writes what the command line asks for."""
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    path, version = sys.argv[1:3]
    image = Image()
    manifests = [image.manifest(*given.split("=", 1), version) for given in sys.argv[3:]]
    image.write(path, version, manifests)
    print(path)


if __name__ == "__main__":
    main()
