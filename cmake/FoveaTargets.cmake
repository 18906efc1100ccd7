# The few ways a target is made here.

# fovea_torch_target(NAME): compiles NAME against libtorch with the one precompiled <torch/torch.h> of the build
# (20 s a file without it, 7 s with). Every target with a source that includes libtorch goes through this.
# What calls libtorch spends its time there, and what libtorch's headers instantiate takes a third less to compile with -O1. The
# precompiled header serves one level only, so all of these have it; sources with loops of their own ask for more
# (fovea_without_torch).
set(FOVEA_TORCH_OPTIMISATION $<$<CONFIG:Release,RelWithDebInfo>:-O1>)
function(fovea_torch_target name)
  if(NOT TARGET fovea_torch_pch)
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/torch_pch.cc CONTENT "")
    add_library(fovea_torch_pch OBJECT ${PROJECT_BINARY_DIR}/torch_pch.cc)
    target_link_libraries(fovea_torch_pch PRIVATE fovea_options Libtorch::torch)
    target_compile_options(fovea_torch_pch PRIVATE ${FOVEA_TORCH_OPTIMISATION})
    target_precompile_headers(fovea_torch_pch PRIVATE <torch/torch.h>)
  endif()
  target_link_libraries(${name} PRIVATE fovea_options PUBLIC Libtorch::torch)
  target_compile_options(${name} PRIVATE ${FOVEA_TORCH_OPTIMISATION})
  target_precompile_headers(${name} REUSE_FROM fovea_torch_pch)
endfunction()

# fovea_without_torch(file...): sources of such a target that do not include libtorch, and compile faster without its header.
function(fovea_without_torch)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_PRECOMPILE_HEADERS ON COMPILE_OPTIONS -O2)
endfunction()

# fovea_torch_library(NAME SOURCES file... [LINK library...]): a shared library on libtorch. Shared, because operators and
# systems register themselves when loaded, and Python loads the same file.
function(fovea_torch_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LINK")
  add_library(${name} SHARED ${arg_SOURCES})
  fovea_torch_target(${name})
  target_link_libraries(${name} PUBLIC ${arg_LINK})
  # A program that only runs operators or systems by name refers to no symbol of ours; it must load us all the same.
  target_link_options(${name} INTERFACE -Wl,--no-as-needed)
endfunction()

# fovea_test(NAME LABELS label... SOURCES file... [LINK library...] [TIMEOUT seconds] [ENVIRONMENT name=value...]):
# a GoogleTest executable, one ctest case for each test so that a skipped one is reported by name. Labels: engine, torch,
# systems, cli, page, python, and slow besides for what `make test` leaves out.
# It sees libtorch, precompiled, when it links a library that does, and Highway when it has the label engine.
function(fovea_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT" "LABELS;SOURCES;LINK;ENVIRONMENT")
  if(NOT arg_LABELS)
    message(FATAL_ERROR "fovea_test(${name}): LABELS missing")
  endif()
  find_package(GTest REQUIRED)
  add_executable(${name} ${arg_SOURCES})
  if("fovea" IN_LIST arg_LINK OR "fovea_systems" IN_LIST arg_LINK)
    fovea_torch_target(${name})
  elseif("engine" IN_LIST arg_LABELS)
    target_link_libraries(${name} PRIVATE fovea_simd)
  endif()
  target_link_libraries(${name} PRIVATE fovea_options ${arg_LINK} GTest::gtest_main)
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  # Discovered when ctest starts, not when the test is linked: a build runs nothing.
  gtest_discover_tests(${name} TEST_PREFIX "${name}." TEST_LIST ${name}_tests DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60)
  # Not through its PROPERTIES, which flattens a list.
  file(GENERATE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/${name}_properties.cmake CONTENT
"foreach(test IN LISTS ${name}_tests)
  set_tests_properties(\${test} PROPERTIES LABELS \"${arg_LABELS}\" TIMEOUT ${arg_TIMEOUT}
    ENVIRONMENT \"FOVEA_SOURCE_DIR=${PROJECT_SOURCE_DIR};${arg_ENVIRONMENT}\")
endforeach()
")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${CMAKE_CURRENT_BINARY_DIR}/${name}_properties.cmake)
endfunction()
