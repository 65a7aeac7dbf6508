"""A device and its backups in Azurite, a server of Azure's protocol: take-overs, a server that hangs, a backup that is killed and goes on."""

import base64
import datetime
import hashlib
import hmac
import os
import random
import socket
import urllib.request

from cases.backup_store import prepared, there_and_back
from cases.objects import silent
from harness import World

OURS = True
SLOW = True
LIMIT = 300
# The account that every Azurite has.
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


def run(world: World) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    os.environ.update(AZURE_STORAGE_ACCOUNT_NAME=ACCOUNT, AZURE_STORAGE_ACCOUNT_KEY=KEY)
    server = world.start(
        world.tool("azurite-blob"), "--silent", "--location", world.dir / "azurite", "--blobHost", "127.0.0.1", "--blobPort", port,
        "--skipApiVersionCheck", "--disableTelemetry", log="azurite.log",
    )
    endpoint = f"http://127.0.0.1:{port}/{ACCOUNT}"
    world.wait(lambda: container_is_made(endpoint), "a container", seconds=60)
    world.servers.up()
    options = ["--endpoint", endpoint]
    silent(world, "az://bucket/silent", options, server, random.Random(seed))
    there_and_back(world, "az://bucket/backups", options, prepared(world))


def container_is_made(endpoint: str) -> bool:
    """Makes the container, by a request that is signed as Azure's "Authorize with Shared Key" says."""
    date = datetime.datetime.now(datetime.timezone.utc).strftime("%a, %d %b %Y %H:%M:%S GMT")
    headers = {"x-ms-date": date, "x-ms-version": "2021-08-06"}
    signed = "PUT" + "\n" * 12 + "".join(f"{name}:{value}\n" for name, value in headers.items())
    signed += f"/{ACCOUNT}/{ACCOUNT}/bucket\nrestype:container"
    signature = base64.b64encode(hmac.new(base64.b64decode(KEY), signed.encode(), hashlib.sha256).digest()).decode()
    headers |= {"Authorization": f"SharedKey {ACCOUNT}:{signature}", "Content-Length": "0"}
    try:
        request = urllib.request.Request(f"{endpoint}/bucket?restype=container", method="PUT", headers=headers)
        return urllib.request.urlopen(request, timeout=5).status == 201
    except OSError:
        return False
