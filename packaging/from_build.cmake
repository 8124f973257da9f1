# With -DKW_BUILT=BUILD this project only hands on what the finished build in BUILD installs, by that
# build's own rules (install.cmake). So a test can make the real wheel, by its real back end, without
# compiling everything a second time; what it leaves out is the compiler, which that build has run.
get_filename_component(built ${KW_BUILT} ABSOLUTE BASE_DIR ${CMAKE_SOURCE_DIR})
if(NOT EXISTS ${built}/cmake_install.cmake)
  message(FATAL_ERROR "KW_BUILT is '${KW_BUILT}', and '${built}' has no cmake_install.cmake: "
                      "name the folder of a finished build of this tree, or leave it out")
endif()
install(CODE "
  execute_process(COMMAND \"${CMAKE_COMMAND}\" --install \"${built}\" --strip --component kernelwright
                          --prefix \"\${CMAKE_INSTALL_PREFIX}\"
                  COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET)
" COMPONENT kernelwright)
