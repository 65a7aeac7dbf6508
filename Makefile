# OpenVSL. `make help` lists what there is to make.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

CARGO ?= cargo
# The distribution's own Python: python3-libnbd, which the tests use, belongs to it.
PYTHON ?= /usr/bin/python3
PREFIX ?= /usr/local
DESTDIR ?=
# Minutes that `make soak` gives each figure at most.
MINUTES ?= 10
# The crates that `make check` looks at.
SCOPE := $(if $(CRATE),--manifest-path $(wildcard */$(CRATE)/Cargo.toml),--workspace)
TARGET := $(or $(CARGO_TARGET_DIR),target)

# Cases that run a second time where io_uring is refused: files, disks, every export, durability, drills, kill -9. What else an
# export says and a guest's kernel makes of it (`nvme_guest`) does not depend on that.
ON_THREADS := backing_errors crash detach disconnects disk_full drill_faults drill_power durability emulated ext4 fio_mixed \
	fio_verify flashback kill libnbd_commands lossy_cuts multi_conn nvme_guest_restart page_file slow_requests status tls trace_record vhost

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-17s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: run
run: ## Build, make a default device, attach it and print what to try
	scripts/run.sh

.PHONY: stop
stop: ## Stop what `make run` started
	scripts/run.sh stop

.PHONY: release
release: ## Build the optimised `vsl`
	scripts/build-console.sh
	$(CARGO) build --locked --release --bin vsl

# Clippy looks at our crates while they are built for the tests: by itself it would compile everything that they depend on a second time.
# These are the variables by which `cargo clippy` calls it, as `make check` does.
LINTING := RUSTC_WORKSPACE_WRAPPER=clippy-driver CLIPPY_ARGS=-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__

# The whole-system tests drive the development build: its overflow checks and debug assertions are on. All targets are built at once,
# the tests among them: a build of the programs alone would have other features, and compile most crates once more.
.PHONY: test
test: ## Check everything: format, lints, unit tests, whole-system tests with foreign clients
	scripts/install-build-tools.sh
	scripts/build-console.sh
	$(CARGO) fmt --all --check
	@# What the tests call is installed meanwhile: mostly that waits for the network and the disk.
	(scripts/install-test-tools.sh && scripts/install-databases.sh && scripts/install-package-root.sh) & \
	  scripts/check-dependencies.sh && $(LINTING) $(CARGO) build --locked --workspace --all-targets && wait $$!
	RUST_TEST_THREADS=$$((2 * $$(nproc))) $(LINTING) $(CARGO) test --locked --workspace
	$(PYTHON) tests/pages.py $(TARGET)/debug/vsl
	$(PYTHON) tests/planted.py
	$(PYTHON) tests/run.py --vsl $(TARGET)/debug/vsl --tools $(TARGET)/tools/bin
	$(PYTHON) tests/run.py --vsl $(TARGET)/debug/vsl --tools $(TARGET)/tools/bin --without-io-uring $(ON_THREADS)
	scripts/test-console.sh $(TARGET)/debug/vsl

.PHONY: check
check: ## The inner loop: format, lints, unit tests and pages, without root (CRATE=ftl: of one crate)
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked $(SCOPE) --all-targets -- -D warnings
	$(CARGO) test --locked $(SCOPE) --lib --quiet
	$(PYTHON) tests/pages.py
	$(PYTHON) tests/planted.py --check

.PHONY: soak
soak: ## Measure every figure that is promised, ten minutes each (MINUTES=), and write docs/soak.md
	scripts/install-test-tools.sh
	scripts/install-databases.sh
	scripts/install-fsx.sh
	scripts/install-versitygw.sh
	scripts/install-azurite.sh
	scripts/install-sqlite-tests.sh
	scripts/install-debian.sh
	scripts/install-release-tools.sh
	scripts/install-package-root.sh
	$(PYTHON) tests/soak.py --minutes $(MINUTES)
	$(MAKE) docs
	packaging/package-crates.sh
	packaging/check-reproducible.sh

.PHONY: bench
bench: release ## Measure side by side with peers and write docs/bench.md (BENCH=quick: a shorter run)
	scripts/install-test-tools.sh
	$(CARGO) build --locked --release -p openvsl-card --example module_speed
	$(PYTHON) bench/simulation.py --example $(TARGET)/release/examples/module_speed
	$(CARGO) build --locked --release -p openvsl-export --example protocols -p blkload --bin blkload
	$(PYTHON) bench/nvme.py --example $(TARGET)/release/examples/protocols $(if $(filter quick smoke,$(BENCH)),--seconds 1 --rounds 3)
	$(PYTHON) bench/vhost.py --example $(TARGET)/release/examples/protocols --blkload $(TARGET)/release/blkload $(if $(filter quick smoke,$(BENCH)),--seconds 1 --rounds 3)
	$(PYTHON) bench/run.py --vsl $(TARGET)/release/vsl --plan $(or $(BENCH),full)

.PHONY: demo-databases
demo-databases: ## Measure databases with and without double writes, cut their power, and draw target/databases/databases.html
	scripts/install-databases.sh
	scripts/build-console.sh
	$(CARGO) build --locked --release --bin vsl --bin vsl-directfs --bin faultfs -p openvsl-cli -p openvsl-files -p faultfs \
	  --example sqlite_speed --example databases_page
	$(PYTHON) bench/databases.py --vsl $(TARGET)/release/vsl --out $(TARGET)/databases

.PHONY: docs
docs: ## Build the book with search, in target/book, and check its links
	scripts/build-console.sh
	scripts/install-mdbook.sh
	$(CARGO) build --locked --bin vsl
	$(PYTHON) scripts/build-docs.py $(TARGET)/debug/vsl $(TARGET)/tools/bin/mdbook $(TARGET)/book

.PHONY: install
install: release ## Install under PREFIX (/usr/local): program, man pages, completions, systemd unit
	scripts/install-files.sh $(TARGET)/release/vsl $(PREFIX) $(DESTDIR)

.PHONY: install-sdk
install-sdk: ## Install the C library, vsl-directfs and the extension of SQLite under PREFIX (/usr/local)
	$(CARGO) build --locked --release -p openvsl-c -p openvsl-files --lib --bins
	scripts/install-sdk.sh $(TARGET)/release $(PREFIX) $(DESTDIR)

.PHONY: wheel
wheel: ## Build the Python package, in target/wheels
	scripts/install-pinned.sh wheel sdk/python/tools.txt maturin
	$(TARGET)/tools/bin/maturin build --locked --release --manifest-path sdk/python/Cargo.toml --out $(TARGET)/wheels

.PHONY: deb
deb: release ## Make the Debian packages, in target/deb
	scripts/install-package-root.sh
	$(CARGO) build --locked --release -p openvsl-c -p openvsl-files --lib --bins
	packaging/build-deb.sh $(TARGET)/release/vsl $(TARGET)/release $(TARGET)/deb

.PHONY: static
static: ## Build the program as one static file, for x86_64 and aarch64, in target/static
	scripts/build-console.sh
	packaging/build-static.sh x86_64 aarch64

.PHONY: image
image: static ## Make a container image (OCI) of the static programs, in target/openvsl.oci.tar
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) packaging/build-image.py $(TARGET)/openvsl.oci.tar latest \
	  x86_64=$(TARGET)/static/vsl-x86_64 aarch64=$(TARGET)/static/vsl-aarch64

.PHONY: release-artifacts
release-artifacts: ## Make everything of a release, with checksums, bill of materials and licences, in target/release-artifacts
	scripts/install-package-root.sh
	packaging/release.sh $(TARGET)/release-artifacts

.PHONY: uninstall
uninstall: ## Remove what `make install` put under PREFIX; device files and state stay
	scripts/uninstall-files.sh $(PREFIX) $(DESTDIR)

.PHONY: clean
clean: ## Remove what was built
	$(CARGO) clean
