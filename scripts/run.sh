#!/usr/bin/env bash
# Builds vsl, makes the default devices, starts the service and says what to try; `run.sh stop` stops it again.
# Everything lives in ./run. Running it a second time finds what is there.
set -euo pipefail
cd "$(dirname "$0")/.."
here=$PWD/run
binary=${CARGO_TARGET_DIR:-target}/release/vsl
case $binary in /*) ;; *) binary=$PWD/$binary ;; esac
export OPENVSL_RUNTIME_DIR=$here OPENVSL_STATE_DIR=$here/state

if [ "${1:-}" = stop ]; then
  if [ ! -x "$binary" ]; then
    echo "nothing was built yet, so nothing runs" >&2
    exit 0
  fi
  exec "$binary" down --force
fi
if [ $# -gt 0 ]; then
  echo "run.sh: '$1' is not known; say 'run.sh' to start, 'run.sh stop' to stop" >&2
  exit 2
fi

scripts/install-build-tools.sh
scripts/build-console.sh
"${CARGO:-cargo}" build --locked --release --bin vsl
mkdir -p "$here"

# The same vsl, talking to the service of this directory.
cat >"$here/vsl" <<WRAPPER
#!/bin/sh
export OPENVSL_RUNTIME_DIR='$here' OPENVSL_STATE_DIR='$here/state'
exec '$binary' "\$@"
WRAPPER
chmod +x "$here/vsl"

profile=iodrive-duo-640-mlc
if [ ! -e "$here/fct0.vsl" ] && [ ! -e "$here/fct1.vsl" ]; then
  "$binary" create "$here/fct" --profile "$profile"
fi
console=${OPENVSL_LISTEN:-127.0.0.1:7420}
nvme=${OPENVSL_NVME_LISTEN:-127.0.0.1:4420}
if ! "$binary" up --listen "$console" --nvme-listen "$nvme" >/dev/null; then
  echo "run.sh: where $nvme (NVMe) or $console (the console) is taken, choose another:" >&2
  echo "  OPENVSL_NVME_LISTEN=127.0.0.1:4421 OPENVSL_LISTEN=127.0.0.1:7421 make run" >&2
  exit 1
fi
for device in fct0 fct1; do
  if ! "$binary" status "$device" --field uri >/dev/null 2>&1; then
    "$binary" attach "$here/$device.vsl" >/dev/null
  fi
done
uri=$("$binary" status fct0 --field uri)

echo
echo "The service is running, with the two modules of $profile (sparse files in run/):"
for device in fct0 fct1; do
  echo "  $("$binary" status "$device" --field uri)"
done
if console=$("$binary" console 2>/dev/null); then
  echo
  echo "The console: $console"
fi
cat <<HINTS

Things to try:
  run/vsl status -a
  run/vsl top
  nbdinfo '$uri'
  fio --name=try --ioengine=nbd --uri='$uri' --rw=randwrite --bs=4k --iodepth=32 --size=1g --runtime=10 --time_based
  qemu-img bench -w -c 100000 -d 32 -s 4096 -f raw '$uri'
  run/vsl sim $profile --rw randwrite --bs 4k --iodepth 32 --runtime 10   # how the real card would do, in virtual time

A file system on it (as root; by the kernel's NVMe, or by what it has instead):
  disk=\$(run/vsl connect fct0)
  mkfs.ext4 \$disk && mkdir -p run/mnt && mount -o discard \$disk run/mnt
  umount run/mnt && run/vsl disconnect fct0

From any other kernel that can reach this machine's loopback, a virtual machine for instance:
  $("$binary" status fct0 --field nvme_command)

Stop it:           make stop
Start all over:    make stop && rm -rf run
HINTS
