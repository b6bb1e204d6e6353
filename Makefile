# The house: one word for everything one does here. `make` alone lists them.

SHELL := /bin/bash
.DEFAULT_GOAL := help
# rustup installs here, and not every shell knows.
export PATH := $(PATH):$(HOME)/.cargo/bin

# Simulated histories for `make soak`, seconds per target for `make fuzz`.
SEEDS ?= 100000
FUZZ_SECONDS ?= 60
# Runs for `make soak-memory`, after its warm-up.
RUNS ?= 300000
# How long `make chaos` breaks things.
CHAOS_SECONDS ?= 600

.PHONY: help
help: ## Lists the targets.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: run
run: toolchain ## Builds and starts the scheduling centre on 127.0.0.1:8080, its data in tickwright-data/.
	cargo run --release -p tickwright-cli -- serve

.PHONY: embedded
embedded: toolchain ## Runs the embedded example: three processes on one database, one of them killed.
	cargo run --release -p tickwright-examples --example embedded

.PHONY: flow
flow: toolchain ## Runs the workflow example: a workflow in a program that is its own scheduling centre.
	cargo run -p tickwright-examples --example flow

.PHONY: test
test: toolchain ## Runs every check and every test, on SQLite, MariaDB and PostgreSQL.
	@scripts/databases run -- scripts/test

.PHONY: interop
interop: toolchain ## Runs executors with third-party client libraries against the centre: Java, Python, Node.js, Rust.
	@scripts/interop

.PHONY: tools
tools: ## Installs the Python tools that tests use: an SMTP server and an API tester.
	@scripts/tools

.PHONY: audit
audit: toolchain ## Audits dependencies: advisories, licences, bans and sources of Rust crates, advisories of npm packages.
	@scripts/audit

.PHONY: bench
bench: bench-cron bench-timer bench-store bench-executor bench-outbound bench-centre bench-hostile bench-history bench-move bench-flows ## Runs all benchmarks.

.PHONY: bench-cron
bench-cron: toolchain ## Measures how fast the next fire of a schedule is found.
	cargo bench -p tickwright-cron --bench next_fire

.PHONY: bench-timer
bench-timer: toolchain ## Measures the timing wheel.
	cargo bench -p tickwright-timer --bench wheel

.PHONY: bench-store
bench-store: toolchain ## Measures claims and completions on each database, all of them durable.
	scripts/databases run -- cargo run --release -p tickwright-tests --features tickwright-tests/programs --bin bench-store

.PHONY: bench-executor
bench-executor: toolchain ## Measures how many runs one executor takes, runs and reports.
	cargo bench -p tickwright-executor --bench executor

.PHONY: bench-outbound
bench-outbound: toolchain ## Measures how many runs the centre can send, next to a common client and bare sockets.
	cargo bench -p tickwright-server --bench outbound

.PHONY: bench-centre
bench-centre: toolchain ## Measures a whole centre as a process: how many fires, how late, at what cost.
	cargo build --release -p tickwright-cli -p tickwright-tests --features tickwright-tests/programs --bin tickwright --bin bench-centre
	scripts/databases run -- target/release/bench-centre

.PHONY: bench-hostile
bench-hostile: toolchain ## Measures how late fires are, and how much memory is held, while a centre is attacked.
	cargo build --release -p tickwright-cli -p tickwright-tests --features tickwright-tests/programs --bin tickwright --bin bench-centre
	scripts/databases run -- target/release/bench-centre --hostile

.PHONY: bench-flows
bench-flows: toolchain ## Measures workflows: time between two steps, long chains, wide joins, large graphs.
	cargo build --release -p tickwright-cli -p tickwright-tests --features tickwright-tests/programs --bin tickwright --bin bench-flows
	scripts/databases run -- target/release/bench-flows

.PHONY: bench-history
bench-history: toolchain ## Measures a centre with ten million runs in its log: pages of it, and fires while old runs are deleted.
	cargo build --release -p tickwright-cli -p tickwright-tests --features tickwright-tests/programs --bin tickwright --bin bench-history
	scripts/databases run -- target/release/bench-history

.PHONY: bench-move
bench-move: toolchain ## Measures how fast many jobs are adopted, imported, started and stopped, and the fires due meanwhile.
	cargo build --release -p tickwright-cli -p tickwright-tests --features tickwright-tests/programs --bin tickwright --bin bench-move
	scripts/databases run -- target/release/bench-move

.PHONY: chaos
chaos: toolchain ## Breaks real processes, databases and networks while jobs fire; CHAOS_SECONDS=600 sets the duration.
	cargo build --release -p tickwright-cli -p tickwright-tests --features tickwright-tests/programs --bin tickwright --bin chaos
	scripts/databases run -- target/release/chaos --seconds $(CHAOS_SECONDS)

.PHONY: ha
ha: toolchain ## Breaks replicated databases, Galera and PostgreSQL under Patroni, while jobs fire on three centres.
	cargo build --release -p tickwright-cli -p tickwright-tests --features tickwright-tests/programs --bin tickwright --bin ha
	scripts/databases run --galera -- target/release/ha
	scripts/databases run --patroni sync -- target/release/ha
	scripts/databases run --patroni async -- target/release/ha

.PHONY: soak
soak: toolchain ## Simulates many clusters with faults; SEEDS=100000 sets their number.
	cargo run --release -p tickwright-tests --features tickwright-tests/programs --bin soak -- --seeds $(SEEDS)

.PHONY: soak-memory
soak-memory: toolchain ## Watches the memory of a centre over 300 000 runs on each database; RUNS=300000 sets their number.
	cargo build --release -p tickwright-cli -p tickwright-tests --features tickwright-tests/programs --bin tickwright --bin soak-memory
	scripts/databases run -- target/release/soak-memory --runs $(RUNS)

.PHONY: fuzz
fuzz: toolchain ## Fuzzes every target in fuzz/; FUZZ_SECONDS=60 sets the duration of each.
	@cargo fuzz --version >/dev/null 2>&1 || { echo "cargo-fuzz is missing; run: cargo install cargo-fuzz" >&2; exit 1; }
	set -euo pipefail; for target in $$(cargo fuzz list); do \
		cargo fuzz run --sanitizer none "$$target" -- -max_total_time=$(FUZZ_SECONDS); \
	done

.PHONY: console
console: ## Builds the web console, which the next build of the program embeds.
	scripts/console install build

.PHONY: wire
wire: toolchain ## Generates the console's types of the API, console/src/api/wire.ts, from the OpenAPI description.
	TICKWRIGHT_WRITE_WIRE=1 cargo test --workspace --test wire

.PHONY: screenshots
screenshots: toolchain console ## Takes pictures of every page of the console, light, dark, phone and Chinese, into screenshots/.
	cargo build -p tickwright-cli
	cd console && node browser/screenshots.js ../screenshots

.PHONY: fmt
fmt: toolchain ## Formats all code.
	cargo fmt --all

# What cargo cannot tell by itself in one line.
.PHONY: toolchain
toolchain:
	@type -P cargo >/dev/null || { echo "Rust is missing; install it from https://rustup.rs and try again" >&2; exit 1; }
	@type -P cc >/dev/null || { echo "a C compiler is missing; run: apt-get install build-essential" >&2; exit 1; }
