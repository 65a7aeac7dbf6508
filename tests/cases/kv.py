"""vsl kv: a store in a file and in the service, its keys, pools and errors; and what was put is there after kill -9."""

import json
import os

from harness import KIB, MIB, Device, World, check, equal
from harness.servers import kill

OURS = True


def run(world: World) -> None:
    path = world.dir / "store.vsl"
    world.vsl("create", path, "--size", 64 * MIB)
    refused = world.vsl("kv", path, "get", "a", fails=True)
    check("holds no key-value store" in refused.text and "create" in refused.text, refused.text)
    world.vsl("kv", path, "create", "--max-value", "64KiB")
    check("is not empty" in world.vsl("kv", path, "create", fails=True).text, "a store is made over another")
    world.vsl("kv", path, "put", "greeting", "good morning")
    value = world.dir / "value"
    value.write_bytes(os.urandom(64 * KIB))
    world.vsl("kv", path, "put", "long", "--file", value, "--pool", "bytes")
    equal(world.vsl("kv", path, "get", "greeting").out, "good morning", "a value")
    equal(world.vsl("kv", path, "list").out, "12\tgreeting\n", "keys")

    world.servers.up()
    world.vsl("attach", path)
    # By its name, and by its file, which the service has now.
    for device in ["store", path]:
        equal(world.vsl("kv", device, "get", "greeting").out, "good morning", "a value over the service")
        equal(world.vsl("kv", device, "pools").out, "bytes\n", "pools")
    [key] = json.loads(world.vsl("--json", "kv", "store", "list", "--pool", "bytes").out)["keys"]
    equal(key, {"key": "long", "value_bytes": 64 * KIB}, "keys as JSON")
    world.run("sh", "-c", f"{world.vsl_path} kv store get long --pool bytes > got && cmp got value")
    world.vsl("kv", "store", "put", "greeting", "good night")
    world.vsl("kv", "store", "delete", "long", "--pool", "bytes")
    equal(world.vsl("kv", "store", "get", "long", "--pool", "bytes", fails=True).code, 3, "exit code of a key that is not there")
    check("no pool 'x'" in world.vsl("kv", "store", "list", "--pool", "x", fails=True).text, "a pool that is not there")
    long_key = world.vsl("kv", "store", "put", "k" * 129, "v", fails=True)
    equal(long_key.code, 2, "exit code of a key that is too long")
    check("129 bytes" in long_key.text, long_key.text)
    world.run("sh", "-c", f"head -c 70000 /dev/zero | {world.vsl_path} kv store put large 2> refused; test $? = 2 && grep -q 'takes up to' refused")

    kill(Device("store", path, 64 * MIB, world.servers.uri("store")))
    equal(world.vsl("kv", path, "get", "greeting").out, "good night", "a value after kill -9")
    equal(world.vsl("kv", path, "list").out, "10\tgreeting\n", "keys after kill -9")
