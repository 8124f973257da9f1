# For a newcomer: `make demo` and `make test`, which install what is missing first; `make test-fast`
# is what to run while one works.
.PHONY: demo test test-fast build setup format
demo:
	@scripts/demo
test: build
	@scripts/test
test-fast: build
	@scripts/test --fast
build: setup
	@scripts/build
setup:
	@scripts/setup
format:
	@git ls-files 'src/*.cpp' 'src/*.h' 'tools/*.cpp' 'tests/*.cpp' 'examples/cpp/*.cpp' 'examples/cpp/*.h' | xargs clang-format -i
