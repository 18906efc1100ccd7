# The front door. On a bare Debian 12 with git, make and Python 3: `make demo` or `make test`, and nothing before it.
# Each target installs what is missing (scripts/setup, once), configures (once) and builds what changed.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

JOBS ?= $(shell nproc)
CMAKE_FLAGS ?=
SECONDS ?= 10
RUNS ?=
N ?= 1000
TOUR ?= out/tour
SOURCES = $(shell git ls-files '*.cc' '*.h' '*.cu' '*.cuh')
# What `make lint` gives to clang-tidy, of what the libraries and the command are compiled from: what matches, as in
# `make lint LINT=torch/`, or LINT=. for all, which takes a minute for every unit that includes libtorch. Left out: the page's generated file, and the one that asks for features by names clang 14 lacks. Without
# OpenMP, whose header Debian's clang has in a package of its own.
LINT ?= engine/|metrics/

help: ## what there is
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

demo: build ## install, build, and a short run of every system: pictures in out/tour/index.html
	@build/bin/fovea tour --out $(TOUR)

# What needs no libtorch is tested a second time under the sanitisers; the engine's sweep takes every thirteenth case there.
test: setup-tests build/build.ninja build-asan-ubsan/build.ninja ## install, build, and every test that is not slow
	@cmake --build build -j $(JOBS)
	@ctest --test-dir build -j $(JOBS) -LE slow --output-on-failure --no-tests=error
	@$(MAKE) sanitise

sanitise: setup-tests build-asan-ubsan/build.ninja ## what needs no libtorch, under the address and undefined-behaviour sanitisers
	@cmake --build build-asan-ubsan -j $(JOBS)
	@FOVEA_SWEEP_EVERY=13 ctest --test-dir build-asan-ubsan -j $(JOBS) -LE slow --output-on-failure --no-tests=error

# Not in `make test`: it compiles everything a second time. Left out, each for a reason: what Python loads (its process has no sanitiser), what
# preloads libfaults.so (the sanitiser must come first), what pages and the README say (they run no other code), and the engine's tests, which
# `make sanitise` has. What libtorch itself never frees is listed in tests/leaks.txt.
ALL_LABELS = torch|systems|cli|page
sanitise-all: setup-tests ## the same with libtorch: training, explaining, every system and the command (half an hour of two cores)
	@[ -e build-asan-torch/build.ninja ] || cmake --preset asan-torch $(CMAKE_FLAGS)
	@cmake --build build-asan-torch -j $(JOBS)
	@LSAN_OPTIONS=suppressions=$(CURDIR)/tests/leaks.txt:print_suppressions=0 UBSAN_OPTIONS=print_stacktrace=1 \
	  ctest --test-dir build-asan-torch -j $(JOBS) -L '$(ALL_LABELS)' -LE 'slow|python' -E '^(faults|kills)\.|^(loaded_test|readme_systems|system_pages)' \
	  --output-on-failure --no-tests=error

clang: setup-tests setup-fuzz ## all of it compiled by clang, warnings as errors, and what the engine and libtorch's operators are tested by
	@[ -e build-clang/build.ninja ] || cmake --preset clang $(CMAKE_FLAGS)
	@cmake --build build-clang -j $(JOBS)
	@ctest --test-dir build-clang -j $(JOBS) -L 'engine|torch' -LE 'slow|python' --output-on-failure --no-tests=error

races: setup-tests ## the engine's tests of threads under the thread sanitiser (minutes)
	@[ -e build-tsan/build.ninja ] || cmake --preset tsan $(CMAKE_FLAGS)
	@cmake --build build-tsan -j $(JOBS) --target threads_test
	@FOVEA_THREADS=4 build-tsan/bin/threads_test --gtest_filter='Callers*:*ChangeNothing*'

# Under emulation: minutes. Of the sweep every thirteenth case, as under the sanitisers.
arm: build-arm/build.ninja ## the engine's tests for 64-bit Arm, cross-compiled, under qemu-user (minutes)
	@cmake --build build-arm -j $(JOBS)
	@FOVEA_SWEEP_EVERY=13 ctest --test-dir build-arm -j $(JOBS) -LE slow --output-on-failure --no-tests=error

fuzz: setup-fuzz ## every fuzz target for SECONDS=10, or RUNS=10000000 executions, under the sanitisers: a table of counts and finds
	@[ -e build-fuzz/build.ninja ] || cmake --preset fuzz $(CMAKE_FLAGS)
	@cmake --build build-fuzz -j $(JOBS) --target fuzz_parsers fuzz_engine
	@scripts/fuzz $(if $(RUNS),--runs $(RUNS),--seconds $(SECONDS)) --jobs $(JOBS)

fuzz-fast: setup-fuzz ## what reads bytes, without the sanitisers: several times as many executions
	@[ -e build-fuzz-fast/build.ninja ] || cmake --preset fuzz-fast $(CMAKE_FLAGS)
	@cmake --build build-fuzz-fast -j $(JOBS) --target fuzz_parsers
	@scripts/fuzz --build build-fuzz-fast $(if $(RUNS),--runs $(RUNS),--seconds $(SECONDS)) --jobs $(JOBS)

faults: setup-tests build/build.ninja ## every file operation and many allocations of every verb made to fail, one at a time (minutes on many cores)
	@cmake --build build -j $(JOBS) --target fovea_command faults fovea_prefork
	@FOVEA_PREFORK=$(CURDIR)/build/bin/fovea_prefork scripts/faults --all --jobs $(JOBS)

kills: setup-tests build/build.ninja ## N=1000 kills over every system that trains, seeds and folds, each resumed and compared
	@cmake --build build -j $(JOBS) --target fovea_command faults
	@FOVEA_FAULTS=$(CURDIR)/build/lib/libfaults.so scripts/kills --kills $(N) --jobs $(JOBS)

damages: setup-tests build/build.ninja ## whatever a finished run of every system has recorded damaged, one thing at a time, and opened (minutes on many cores)
	@cmake --build build -j $(JOBS) --target fovea_command fovea_prefork
	@FOVEA_PREFORK=$(CURDIR)/build/bin/fovea_prefork scripts/damages --jobs $(JOBS)

# Sizes and the patience: scripts/growth --help.
growth: build ## peak memory and time of every system against the number of its items, slopes, and ten times the epochs
	@scripts/growth --sizes 1000,10000,100000,1000000 --jobs $(JOBS)

# After a change of what the formats are; the files are part of the repository.
seeds: setup-fuzz
	@[ -e build-fuzz/build.ninja ] || cmake --preset fuzz $(CMAKE_FLAGS)
	@cmake --build build-fuzz -j $(JOBS) --target fuzz_seeds
	@build-fuzz/bin/fuzz_seeds tests/fuzz/corpus

# Against the torch of `python3`, which must see a CUDA device; every combination in PARTS processes side by side.
PARTS ?= 4
test-cuda: ## what needs a CUDA device: its tests, and every combination against the CPU (minutes)
	@cmake --preset cuda -DFOVEA_SYSTEMS=OFF -DFOVEA_TESTS=OFF -DFOVEA_BENCH=OFF $(CMAKE_FLAGS)
	@cmake --build build-cuda -j $(JOBS) --target fovea
	@FOVEA_LIBRARY=build-cuda/lib/libfovea.so PYTHONPATH=python python3 -m pytest -q $(wildcard tests/python/test_cuda.py tests/python/*/test_*_cuda.py)
	@export FOVEA_LIBRARY=build-cuda/lib/libfovea.so PYTHONPATH=python:tests/python; \
	  for part in $$(seq 0 $$(($(PARTS) - 1))); do python3 tests/python/cuda_product.py $$part $(PARTS) & all="$$all $$!"; done; \
	  for one in $$all; do wait $$one || failed=1; done; [ -z "$$failed" ]

slow: setup-tests build/build.ninja ## the tests that are marked slow
	@cmake --build build -j $(JOBS) --target all slow_tests
	@ctest --test-dir build -L slow --output-on-failure --no-tests=error

build: setup build/build.ninja ## the libraries and the command: build/bin/fovea
	@cmake --build build -j $(JOBS) --target fovea_command

python: setup-tests ## the Python package, into .venv
	@CXX=c++ .venv/bin/python -m pip install --disable-pip-version-check --no-build-isolation --no-deps .

bench: build ## ours, the best peer and the machine's roof
	@build/bin/fovea bench

format: ## put every source into shape
	@command -v clang-format >/dev/null || { echo "clang-format is not installed (Debian: apt-get install clang-format)"; exit 1; }
	@clang-format -i $(SOURCES)

lint: build-lint/build.ninja ## the shape of every source, and clang-tidy on the engine (LINT=torch/ for another part, LINT=. for all)
	@command -v clang-format clang-tidy >/dev/null || { echo "lint needs clang-format and clang-tidy (Debian: apt-get install both)"; exit 1; }
	@clang-format --dry-run -Werror $(SOURCES)
	@sed -nE 's|^ *"file": "$(CURDIR)/(.*)",?$$|\1|p' build-lint/compile_commands.json | grep -vE '/web/assets|engine/simd/targets' | grep -E '$(LINT)' | \
	  xargs -P $(JOBS) -n 1 clang-tidy -p build-lint --quiet --extra-arg=-fno-openmp 2> >(grep -vE '[0-9]+ warnings?( and [0-9]+ errors?)? generated' >&2)
	@echo "lint: clean"

clean: ## remove what was built; what was installed stays
	@rm -rf build build-* out

setup:
	@scripts/setup

setup-tests:
	@scripts/setup tests

setup-arm:
	@scripts/setup arm

setup-fuzz:
	@scripts/setup fuzz

# Configured once; from then on ninja configures again when a CMakeLists.txt changes.
build/build.ninja: | setup
	@cmake --preset release $(CMAKE_FLAGS)

build-asan-ubsan/build.ninja: | setup
	@cmake --preset asan-ubsan $(CMAKE_FLAGS)

build-arm/build.ninja: | setup-arm
	@cmake --preset arm $(CMAKE_FLAGS)

# For clang-tidy: no precompiled header, which only its compiler reads, and no tests.
build-lint/build.ninja: | setup
	@cmake --preset release -B build-lint -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON -DFOVEA_TESTS=OFF $(CMAKE_FLAGS)

.PHONY: help demo test test-cuda sanitise sanitise-all races clang arm fuzz fuzz-fast seeds faults kills damages growth slow build python bench format lint clean setup setup-tests setup-arm setup-fuzz
