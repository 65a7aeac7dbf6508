#!/usr/bin/env bash
# Checks the web console: lints, types against the API's own description, unit tests, and itself in a browser before a real
# service: test-console.sh VSL
set -euo pipefail
vsl=$(realpath "${1:?the built vsl}")
cd "$(dirname "$0")/.."
scripts/build-console.sh
cd console
export VSL=$vsl
npm run --silent types
npm run --silent check
npm run --silent unit
npm run --silent e2e
