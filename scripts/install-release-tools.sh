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
  # Ansible installs packages with it.
  "import:apt python3-apt"
)
missing=$(scripts/missing-packages.sh "${needs[@]}")
# Unquoted: each name is a word.
[ -z "$missing" ] || scripts/install-packages.sh install-release-tools $missing
packaging/build-static.sh x86_64 aarch64
