# What is installed, and where: one list for `cmake --install`, for the wheel, and for find_package.
#
#   bin/                    kernelwright, kernelwright-prove, kernelwright-tune-time
#   lib/                    libkernelwright_launch.so, which needs nothing but glibc and libgcc_s
#   include/kernelwright/   its header
#   lib/cmake/kernelwright/ what find_package(kernelwright) reads
#   share/kernelwright/     what the programs look up as they run (src/driver/environment/home.h)
#
# Nothing in it knows the prefix, so the whole may be moved. The component `python` is the package of
# python/ for programs that are installed without a wheel; a wheel has it at its own place.
include(CMakePackageConfigHelpers)
set(home share/kernelwright)
set(part COMPONENT kernelwright)

install(TARGETS kernelwright kernelwright-prove kernelwright-tune-time
        RUNTIME DESTINATION bin ${part})
install(TARGETS kernelwright_launch EXPORT kernelwright LIBRARY DESTINATION lib ${part})
install(DIRECTORY include/kernelwright DESTINATION include ${part})

install(DIRECTORY cuda gpus kernels prompts self_test sketches DESTINATION ${home} ${part})
install(DIRECTORY bench/ DESTINATION ${home}/bench ${part} FILES_MATCHING PATTERN *.py)
install(FILES docs/certificate.schema.json docs/certificate.training.schema.json DESTINATION ${home}/docs ${part})
# What `kernelwright serve` gives to read.
install(FILES AGENTS.md DESTINATION ${home} ${part})
install(FILES docs/tl.md docs/rules.md docs/soundness.md docs/commands.md
        DESTINATION ${home}/docs ${part})
install(FILES docs/tl/statements.md DESTINATION ${home}/docs/tl ${part})
install(FILES docs/soundness/obligations.md DESTINATION ${home}/docs/soundness ${part})
install(DIRECTORY examples/ DESTINATION ${home}/examples ${part}
        FILES_MATCHING PATTERN *.py PATTERN cpp EXCLUDE)
install(DIRECTORY tests/wrong DESTINATION ${home}/tests ${part})
install(FILES tests/corpus/sm90_attention_fwd.tl tests/corpus/sm90_attention_bwd.tl DESTINATION ${home}/tests/corpus ${part})
install(DIRECTORY python/kernelwright DESTINATION ${home}/python COMPONENT python
        FILES_MATCHING PATTERN *.py)

set(config lib/cmake/kernelwright)
install(EXPORT kernelwright NAMESPACE kernelwright:: FILE kernelwright-targets.cmake
        DESTINATION ${config} ${part})
configure_package_config_file(packaging/kernelwright-config.cmake.in
                              ${CMAKE_BINARY_DIR}/kernelwright-config.cmake
                              INSTALL_DESTINATION ${config})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/kernelwright-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/kernelwright-config.cmake
              ${CMAKE_BINARY_DIR}/kernelwright-config-version.cmake
        DESTINATION ${config} ${part})
