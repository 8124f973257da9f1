# Two commands for a newcomer: `make demo` and `make test`. Both install what is missing first.
.PHONY: demo test build setup format
demo: build
	@build/kernelwright make examples/prefix_lm.py
test: build
	@scripts/test
build: setup
	@scripts/build
setup:
	@scripts/setup
format:
	@git ls-files 'src/*.cpp' 'src/*.h' 'tools/*.cpp' 'tests/*.cpp' 'examples/cpp/*.cpp' 'examples/cpp/*.h' | xargs clang-format -i
