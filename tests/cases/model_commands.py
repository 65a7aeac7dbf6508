"""Every command of the pages about cards runs word for word, in a system of its own."""

from harness import World
from harness.bare import TREE
from harness.layered import pages

ROOT = True
OURS = True
LIMIT = 900
PAGES = ["emulated.md", "groomer.md", "lab.md", "placement.md", "published.md", "scale.md", "sim.md", "traces.md"]
SAMPLES = f"{TREE}/crates/trace/tests/data"
# What a page finds there when it begins, or a command.
BEFORE = {
    "groomer.md": "vsl up && vsl create db.vsl --size 1GiB && vsl attach db.vsl && vsl trace generate mail-server --to vm.vscsi",
    "lab.md $ vsl lab compare": "cp -r $run another-run",
    "placement.md": f"ln -s {TREE}/examples examples",
    "published.md": f"ln -s {TREE}/examples examples && head -n 3 {TREE}/crates/lab/data/published.csv >more-rows.csv",
    "traces.md": f"gzip <{SAMPLES}/msr.csv >usr_0.csv.gz && cp {SAMPLES}/blkparse.txt sda.blkparse",
    "traces.md $ vsl trace record fct0 --to": "vsl up && vsl attach memory:1GiB --name fct0",
}
# What takes minutes (all policies, a whole review, everything published), or half a minute with a development build.
SHORTER = {
    "$ vsl sim --objects s3-standard --format 16GiB": {"--ramp-time 20d --runtime 30d --interval 10d": "--ramp-time 4d --runtime 6d --interval 2d"},
    "$ vsl sim iodrive-320-mlc --rw randwrite --bs 4k --rate-iops 12000": {"--runtime 120": "--runtime 40"},
    "$ vsl lab waf": "--policy lifetime --drive-writes 1",
    "$ vsl lab run storagereview-enterprise": "--test 4k-write --format stock",
    "$ vsl published": "--device iodrive-duo-640-mlc --row spec-64k",
    "$ vsl published --device": "--row improved-write",
    "$ vsl published --rows": "--row 3881",
}
# A full terabyte.
NOT_RUN = {"$ vsl sim --objects s3-standard --format 1TiB": "it takes minutes and three gigabytes of memory"}


def run(world: World) -> None:
    pages(world, PAGES, elsewhere={}, before=BEFORE, shorter=SHORTER, not_run=NOT_RUN, least=20)
