# Everything starts here; a fresh Debian 12 needs git and make only. `make help` lists the targets.

PREFIX ?= /usr/local
DESTDIR ?=

# One job per core, but a source file that includes torch takes up to 1.5 GB to compile.
JOBS ?= $(shell awk -v cores=$$(nproc) '/MemAvailable/ { jobs = int($$2 / 1.5e6) } \
	END { if (jobs > cores) jobs = cores; if (jobs < 1) jobs = 1; print jobs }' /proc/meminfo)

# ccache may reuse what was compiled with a precompiled header.
export CCACHE_SLOPPINESS ?= pch_defines,time_macros

BUILD := cmake --build build --parallel $(JOBS)

.DEFAULT_GOAL := build
.NOTPARALLEL:
.PHONY: demo test test-slow build check format tidy bench results install deb clean help configure
.PHONY: tests-configured needs-build needs-test needs-lint needs-bench needs-package

demo: needs-build build/build.ninja  ## the method on embedded data: a table and a report
	@$(BUILD) --target kelvin_tool catalog
	@build/kelvin demo

test: tests-configured  ## build everything, run the fast tests; those of one area with ONLY=measures/detectors/neco
	@$(BUILD) $(if $(ONLY),--target $(shell scripts/run-tests --program $(ONLY)))
	@scripts/run-tests $(if $(ONLY),--only $(ONLY),-LE 'slow|paper')

test-slow: tests-configured  ## build everything, run the slow tests
	@$(BUILD)
	@scripts/run-tests -L slow

build: needs-build build/build.ninja  ## build/kelvin and the libraries; the tests too, once they were wanted
	@$(BUILD)

check: needs-lint tests-configured  ## layout of all sources, clang-tidy on the changed ones
	@scripts/check-format
	@scripts/tidy

format: needs-lint  ## lay out all sources
	@scripts/check-format --fix

tidy: needs-lint tests-configured  ## clang-tidy on all sources, with its static analyzer
	@scripts/tidy --all

bench: needs-bench tests-configured  ## build and run the benchmarks; those on real data if KELVIN_DATA names it
	@$(BUILD) --target kelvin_tool kelvin_benchmarks kelvin_batch_speed kelvin_decode_speed kelvin_measure_speed kelvin_probe_speed \
		kelvin_detector_speed
	@OMP_NUM_THREADS=1 build/kelvin_benchmarks --benchmark_enable_random_interleaving=true \
		--benchmark_repetitions=5 --benchmark_report_aggregates_only=true
	@build/kelvin bench train
	@build/kelvin bench train --sweep
	@build/kelvin bench train --sweep --precision bf16
	@benchmarks/attention_speed.py
	@benchmarks/detector_speed.py --tool build/kelvin_detector_speed
	@if [ -n "$$KELVIN_DATA" ]; then \
		benchmarks/epoch_speed.py --tool build/kelvin --data "$$KELVIN_DATA" && \
		benchmarks/batch_speed.py --tool build/kelvin_batch_speed --data "$$KELVIN_DATA" && \
		benchmarks/decode_speed.py --tool build/kelvin_decode_speed --images "$$KELVIN_DATA/tiny-imagenet-100" && \
		benchmarks/measure_speed.py --tool build/kelvin_measure_speed --data "$$KELVIN_DATA" && \
		benchmarks/probe_speed.py --tool build/kelvin_probe_speed --data "$$KELVIN_DATA" --one-of-each-width; fi

results: needs-build build/build.ninja  ## print the pages of results/ anew from kept readings
	@$(BUILD) --target kelvin_tool catalog
	@scripts/print-results

install: build  ## install under PREFIX (/usr/local), below DESTDIR if given
	@DESTDIR='$(DESTDIR)' cmake --install build --strip --prefix '$(PREFIX)'

deb: needs-package  ## Debian packages in build-package/: tool, libraries, headers, Python package
	@cmake --preset package --log-level=WARNING \
		$(if $(shell command -v ccache 2>/dev/null),-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
	@cmake --build build-package --parallel $(JOBS)
	@rm -f build-package/*.deb
	@cd build-package && cpack

clean:  ## remove build/
	@rm -rf build

help:  ## this list
	@sed -nE 's/^([a-z-]+):.*  ## (.*)/make \1\t\2/p' Makefile | expand -t 18

# The build configures itself again when a CMakeLists.txt changes; this is for the first time. It leaves
# out the tests, whose libraries are installed only for those who run them.
configure: needs-build build/build.ninja
build/build.ninja: CMakePresets.json
	@cmake --preset dev --log-level=WARNING \
		$(if $(wildcard build/CMakeCache.txt),,-DKELVIN_TESTS=OFF) \
		$(if $(shell command -v ccache 2>/dev/null),-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
	@touch $@

tests-configured: needs-test build/build.ninja
	@grep -q '^build kelvin_tests:' build/build.ninja || cmake -DKELVIN_TESTS=ON --log-level=WARNING build

needs-build:
	@scripts/install-dependencies build
needs-test:
	@scripts/install-dependencies build test
needs-bench:
	@scripts/install-dependencies build test bench
needs-package:
	@scripts/install-dependencies build package
needs-lint:
	@scripts/install-dependencies build test lint
