# SPDX-License-Identifier: Apache-2.0
# A short way to say what CMakeLists.txt and CMakePresets.json do; `make help`.
# Every target first installs the tools it lacks (scripts/setup).

PREFIX ?= /usr/local
DESTDIR ?=
# How many things at once: make JOBS=1 (make's own -j does not reach CMake).
JOBS ?= $(shell nproc)
FUZZ_SECONDS ?= 600
# make analyze-quick: clang-tidy looks at files that differ from this commit.
SINCE ?= HEAD~1
# Of make soak, soak-real and test-kill: where to begin; how many RUNS they are told themselves.
SEED ?= $(shell date +%s)

SOURCES = $(shell find src cli compat test fuzz bench examples -name '*.c')

# $(call configure,PRESET), $(call build,PRESET), $(call check,PRESET)
configure = cmake --preset $(1) --log-level=NOTICE >/dev/null
build = env -u MAKEFLAGS -u MAKELEVEL cmake --build --preset $(1) -j $(JOBS)
check = $(configure) && $(build) && ctest --preset $(1) -j $(JOBS)

.NOTPARALLEL:

all: ## build/hocket, build/libhocket.so and build/libhocket.a (the default)
	@scripts/setup build
	@$(call configure,default)
	@$(call build,default) --target hocket hocket_static hocket_cli hocket_nccl hocket_libnccl hocket_mpitrampoline hocket_sma hocket_xla

test: ## builds everything and runs all tests
	@scripts/setup test
	@$(call check,default)

demo: all ## plans proved, one broken and refused, one performed by 4 ranks
	@scripts/demo

demo-elastic: ## a model trained while ranks die and join
	@scripts/setup build
	@$(call configure,default)
	@$(call build,default) --target example_elastic
	@build/examples/elastic

install: all ## into $(DESTDIR)$(PREFIX); PREFIX=/usr/local
	@DESTDIR='$(DESTDIR)' cmake --install build --prefix '$(PREFIX)'
	@if [ -z '$(DESTDIR)' ] && [ "$$(id -u)" = 0 ]; then ldconfig; fi

check-clang: ## the tests, built by clang with warnings as errors
	@scripts/setup test clang
	@$(call check,clang)

asan: ## the tests under AddressSanitizer and UndefinedBehaviorSanitizer
	@scripts/setup test
	@$(call check,asan)

tsan: ## the tests under ThreadSanitizer
	@scripts/setup test
	@$(call check,tsan)

fuzz: ## every fuzzer for FUZZ_SECONDS=600
	@scripts/setup build fuzz
	@$(call configure,fuzz)
	@$(call build,fuzz)
	@scripts/fuzz build-fuzz $(FUZZ_SECONDS)

analyze: ## clang-tidy, cppcheck, shellcheck, layers, sizes
	@scripts/setup build analyze
	@$(call configure,default)
	@scripts/analyze build $(JOBS)
	@scripts/check-layers
	@scripts/tidy

# What .ci/run has time for, behind make test.
QUICK = hocket hocket_static hocket_cli hocket_nccl hocket_libnccl unit_base unit_check \
	unit_fabric unit_fabric_file unit_json unit_msccl unit_plan golden_golden golden_fabric \
	net_shm net_seal net_stranger net_tcp group_environment group_record
# unit_base is the program of the tests unit/base/...
space := $(subst ,, )
QUICK_TESTS = ^($(subst $(space),|,$(subst _,[/_],$(filter-out hocket%,$(QUICK)))))/

clang-quick: ## the library, the command and the quick tests by clang, warnings as errors
	@scripts/setup build clang
	@$(call configure,clang)
	@$(call build,clang) --target $(QUICK)
	@ctest --preset clang -j $(JOBS) -R '$(QUICK_TESTS)' --no-tests=error

asan-quick: ## the quick tests under AddressSanitizer and UndefinedBehaviorSanitizer
	@scripts/setup build
	@$(call configure,asan)
	@$(call build,asan) --target $(QUICK)
	@ctest --preset asan -j $(JOBS) -R '$(QUICK_TESTS)' --no-tests=error

analyze-quick: ## as analyze, but clang-tidy on up to 40 files that differ from SINCE=HEAD~1
	@scripts/setup build analyze
	@$(call configure,default)
	@scripts/analyze build $(JOBS) $(SINCE)
	@scripts/check-layers
	@scripts/tidy

format: ## clang-format, in place
	@scripts/setup format
	@clang-format -i $(SOURCES)

format-check: ## what clang-format would change
	@scripts/setup format
	@clang-format --dry-run --Werror $(SOURCES)

mutants: ## breaks every plan in every way and prints what was refused
	@scripts/setup build
	@$(call configure,default)
	@$(call build,default) --target prop_mutation
	@build/test/prop_mutation

bench-peers: ## beside Open MPI, MPICH, Gloo and the machine's limits, into docs/; 15 minutes
	@scripts/setup build peers
	@$(MAKE) --no-print-directory all
	@$(MAKE) --no-print-directory -C bench
	@bench/compare --docs

bench-shmem: ## one-sided operations beside Open MPI's OpenSHMEM, into docs/SHMEM.md; 5 minutes
	@scripts/setup build peers
	@$(call configure,default)
	@$(call build,default) --target hocket_cli hocket_sma
	@$(MAKE) --no-print-directory -C bench shmem
	@bench/shmem-compare --docs

validate: ## predictions of NCCL's times beside published ones; DIR=folder of CSV files
	@scripts/setup build validate
	@$(call configure,default)
	@$(call build,default) --target bench_nccl
	@scripts/fit-nccl --check '$(DIR)'

validate-here: ## predictions beside measurements on this machine; 10 minutes
	@scripts/setup build
	@$(call configure,default)
	@$(call build,default) --target hocket_cli
	@scripts/validate-here

# Threads are what ThreadSanitizer can look into.
MATRIX_asan = $(MATRIX_default)
MATRIX_tsan = whole_threads_shm whole_threads_tcp whole_mixed_threads
MATRIX_default = $(MATRIX_tsan) whole_processes_shm whole_processes_tcp whole_mixed_processes
UNDER ?= default
RANKS ?= full

test-matrix: ## every collective x algorithm x type x operation x RANKS x transport; UNDER=asan, tsan
	$(if $(MATRIX_$(UNDER)),,$(error UNDER=$(UNDER): asan or tsan, or leave it out))
	@scripts/setup build
	@$(call configure,$(UNDER))
	@$(call build,$(UNDER)) --target group_matrix
	@for whole in $(MATRIX_$(UNDER)); do \
		HK_TEST_MATRIX=$(RANKS) $(if $(filter default,$(UNDER)),build,build-$(UNDER))/test/group_matrix $$whole || exit 1; \
	done

test-inject: ## every allocation and every system call fails once, in turn; an hour
	@scripts/setup build
	@$(call configure,default)
	@$(call build,default) --target inject_memory inject_calls
	@HK_TEST_INJECT=full build/test/inject_memory
	@HK_TEST_INJECT=full build/test/inject_calls

test-tags: ## a million tags between two ranks, over every transport; 10 minutes
	@scripts/setup test
	@$(call configure,default)
	@$(call build,default) --target group_tags
	@HK_TEST_TAGS=1000000 build/test/group_tags a_tag_for_every_message

test-sim: ## folded against full simulations up to 1,024 ranks; 10 minutes
	@scripts/setup build
	@$(call configure,default)
	@$(call build,default) --target sim_fold
	@HK_TEST_SLOW=1 build/test/sim_fold

soak: ## random faults in virtual time; SEED=... RUNS=... SECONDS=600, WHOLE=1: all kills too
	@scripts/setup build
	@$(call configure,default)
	@$(call build,default) --target swarm_swarm swarm_kill swarm_recover swarm_hook
	@WHOLE='$(WHOLE)' scripts/soak build $(SEED) $(or $(RUNS),0) $(or $(SECONDS),600)

soak-real: ## all kinds of things on real processes, and nothing grows; SECONDS=3600 SEED=...
	@scripts/setup test
	@$(call configure,default)
	@$(call build,default) --target soak_rank
	@test/soak/drive build --seed $(SEED) --seconds $(or $(SECONDS),3600)

test-kill: ## ranks killed, stopped, cut off at random times; RUNS=300 SEED=... DOCS=1
	@scripts/setup test
	@$(call configure,default)
	@$(call build,default) --target kill_rank
	@test/kill/drive build --runs $(or $(RUNS),300) --seed $(SEED) --strict \
		$(if $(DOCS),--docs docs/RELIABILITY.md)

test-gpu: ## collectives on device memory; needs a GPU and nvcc
	@scripts/setup build
	@$(call configure,default)
	@$(call build,default) --target gpu_gpu gpu_pair gpu_apart gpu_staged gpu_driver gpu_heap
	@test/gpu/run build

test-torch: all ## PyTorch's NCCL backend on Hocket, several ranks of a GPU; needs PyTorch with CUDA
	@scripts/test-torch

test-jax: all ## JAX on the CPU, unmodified and with hocket.jax; installs JAX by pip
	@integrations/jax/run

test-ray: all ## Ray's collectives on Hocket, 2 and 4 actors; installs Ray by pip
	@integrations/ray/run

test-mpi4py: all ## mpi4py and Hocket in the same processes; installs mpi4py and MPICH by pip
	@integrations/mpi4py/run

test-megatron: all ## Megatron-Core on the backend "hocket" beside Gloo; installs PyTorch by pip
	@integrations/megatron/run

test-deepspeed: all ## DeepSpeed's ZeRO 1, 2 and 3, likewise
	@integrations/deepspeed/run

test-kserve: all ## a predictor of KServe that is sharded over ranks; installs KServe by pip
	@integrations/kserve/run

test-elastic: all ## Python ranks train while one dies and another joins; installs nothing
	@integrations/elastic/run

# Where torch is installed, by scripts/torch-env.
TORCH_ENV ?= .cache/torch
# An environment may have been made by another checkout: this one is tested.
in_torch = . '$(abspath $(TORCH_ENV))/environment' && PYTHONPATH='$(CURDIR)/bindings/python'

test-torch-cpu: all ## hocket.torch, a backend of PyTorch, on the CPU; installs PyTorch in TORCH_ENV=.cache/torch
	@scripts/setup test
	@scripts/torch-env '$(TORCH_ENV)'
	@$(in_torch) python -m unittest discover -v -s bindings/python/test_torch

# Python and torch are built without a sanitizer, so its libraries are loaded ahead of them, and
# what they never free is not reported. What is built is kept by its flags (HOCKET_CACHE).
asan_flags = -fsanitize=address,undefined -fno-sanitize=vptr -fno-sanitize-recover=undefined \
	-fno-omit-frame-pointer -g -O1
asan_env = HOCKET_LIBRARY='$(CURDIR)/build-asan/libhocket.so' CXXFLAGS='$(asan_flags)'

test-torch-asan: ## hocket.torch and libhocket under AddressSanitizer and UndefinedBehaviorSanitizer
	@scripts/setup test
	@scripts/torch-env '$(TORCH_ENV)'
	@$(call configure,asan)
	@$(call build,asan) --target hocket hocket_cli
	@$(in_torch) $(asan_env) scripts/with-asan python -c 'import hocket.torch'
	@$(in_torch) $(asan_env) scripts/with-asan python -m unittest discover -v \
		-s bindings/python/test_torch

# Another torch than 2.11.0: TORCH_VERSION=2.15.0 TORCH_ENV=.cache/torch-2.15.0.
TORCH_VERSION ?=

test-torch-suite: all ## PyTorch's own distributed tests on hocket.torch, on the CPU; TORCH_VERSION and TORCH_ENV choose the torch
	@scripts/setup test
	@scripts/torch-env '$(TORCH_ENV)' $(if $(TORCH_VERSION),--torch '$(TORCH_VERSION)')
	@$(in_torch) python bindings/python/test_torch/suite.py

bench-gpu: ## eight ranks on one GPU, beside what it can do; needs a GPU and nvcc
	@scripts/setup build
	@$(MAKE) --no-print-directory all
	@bench/gpu

bench-gpu-grouped: ## small grouped sends beside allreduces, eight ranks on one GPU, with and without MPS
	@scripts/setup build
	@$(MAKE) --no-print-directory all
	@bench/gpu-grouped

bench-gpu-one-sided: ## puts, signals and barriers in kernels, 2 and 8 ranks on one GPU, with and without MPS, beside NVSHMEM
	@scripts/setup build
	@bench/gpu-one-sided

bench-gpu-host: ## two processes on one GPU through host memory, beside its copy engines
	@scripts/setup build
	@$(MAKE) --no-print-directory all
	@bench/gpu-host

gpu-report: all ## all of that, as a table with limits in docs/GPU.md; needs a GPU, nvcc and PyTorch
	@$(call configure,default)
	@$(call build,default) --target gpu_gpu gpu_pair gpu_apart gpu_staged gpu_driver gpu_heap
	@bench/gpu --build
	@bench/gpu-host --build
	@scripts/gpu-report --docs

test-launchers: ## srun and both mpirun start a program
	@scripts/setup test launchers
	@$(call configure,default)
	@$(call build,default) --target launch_ranks
	@ctest --preset default -C launchers -L launchers

startup: ## how long 64 and 256 ranks take to start, and what memory they need
	@scripts/setup test
	@$(call configure,default)
	@$(call build,default) --target hocket_cli launch_idle
	@test/launch/startup build

test-simgrid: ## times of plans on a switch, beside those of SimGrid's SMPI
	@scripts/setup test simgrid
	@$(call configure,default)
	@$(call build,default) --target simgrid_perform simgrid_predict
	@test/simgrid/compare build

check-fresh: ## make demo and make test in an empty Debian 12 (as root)
	@scripts/setup fresh
	@scripts/check-fresh

wheel: ## the Python package, for manylinux, into dist/
	@scripts/setup test
	@scripts/wheel

check-wheel: wheel ## the wheel in an empty Debian 12 with python3 alone (as root)
	@scripts/setup fresh
	@scripts/check-fresh --wheel dist/hocket-*.whl

test-python-numpy: ## the Python tests with NumPy, pandas and ml_dtypes of PyPI
	@scripts/setup test
	@$(call configure,default)
	@$(call build,default) --target hocket hocket_cli
	@bindings/python/test/with numpy pandas ml_dtypes

test-python-gpu: ## tensors of PyTorch on a GPU, from Python; needs a GPU, nvcc and PyTorch
	@scripts/setup test
	@$(call configure,default)
	@$(call build,default) --target hocket hocket_cli
	@python3 bindings/python/test/gpu.py

test-python-long: ## 100,000 iterations from Python, and no memory grows; 2 minutes
	@scripts/setup test
	@$(call configure,default)
	@$(call build,default) --target hocket hocket_cli
	@python3 bindings/python/test/long.py

bench-python: ## what a call of 8 bytes takes from Python, beside the C call, into docs/PYTHON.md
	@scripts/setup build
	@$(call configure,default)
	@$(call build,default) --target hocket hocket_cli
	@bindings/python/bench/compare --docs

clean: ## removes every build folder
	@rm -rf build build-dev build-clang build-asan build-tsan build-fuzz build-wheel

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-14s %s\n", $$1, $$2 }' Makefile

.PHONY: bench-shmem all test test-gpu test-torch test-torch-cpu test-torch-asan test-torch-suite test-jax test-ray test-mpi4py test-megatron test-deepspeed test-kserve test-elastic bench-gpu bench-gpu-grouped bench-gpu-host bench-gpu-one-sided gpu-report demo demo-elastic install check-clang clang-quick asan asan-quick tsan fuzz analyze analyze-quick format format-check \
	mutants bench-peers check-fresh clean help validate validate-here test-matrix test-kill test-inject test-tags \
	test-launchers test-sim test-simgrid startup soak soak-real wheel check-wheel test-python-gpu test-python-long test-python-numpy bench-python
