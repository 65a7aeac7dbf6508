#!/usr/bin/env bash
# What `make soak` tries releases and integrations with: the static programs, podman, an emulated processor, SNMP's agent, Ansible. Go is not among
# them: Debian 12's is too old for the driver of Kubernetes.
set -euo pipefail
cd "$(dirname "$0")/.."
needs=(
  "podman podman"
  "crun crun"
  "qemu-aarch64-static qemu-user-static"
  "file file"
  "snmpd snmpd"
  "snmpget snmp"
  "ansible-playbook ansible-core"
)
PATH=$PATH:/usr/sbin:/sbin
missing=()
for need in "${needs[@]}"; do
  read -r tool package <<<"$need"
  command -v "$tool" >/dev/null || missing+=("$package")
done
# Ansible installs packages with it.
/usr/bin/python3 -c 'import apt' 2>/dev/null || missing+=(python3-apt)
[ ${#missing[@]} -eq 0 ] || scripts/install-packages.sh install-release-tools "${missing[@]}"
packaging/build-static.sh x86_64 aarch64
