# The few ways a target is made here.

# fovea_join(NAME SIZE): compiles NAME's sources a few at a time. What a small file includes costs far more than what it says, above
# all with libtorch (7 s an empty file, precompiled header and all). FOVEA_UNITY=OFF, as in preset dev, compiles each alone.
option(FOVEA_UNITY "Compile small files together: less work in all, more after a change of one" ON)
if(FOVEA_UNITY)
  # GCC takes a joined file for a header, where an anonymous namespace would be a mistake.
  target_compile_options(fovea_options INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endif()
function(fovea_join name size)
  set_target_properties(${name} PROPERTIES UNITY_BUILD ${FOVEA_UNITY} UNITY_BUILD_BATCH_SIZE ${size})
endfunction()

# fovea_join_group(NAME GROUP file...): the same, with these together.
function(fovea_join_group name group)
  set_target_properties(${name} PROPERTIES UNITY_BUILD ${FOVEA_UNITY} UNITY_BUILD_MODE GROUP)
  set_source_files_properties(${ARGN} PROPERTIES UNITY_GROUP ${group})
endfunction()

# fovea_torch_target(NAME): compiles NAME against libtorch with the one precompiled <torch/torch.h> of the build
# (20 s a file without it, 7 s with). Every target with a source that includes libtorch goes through this.
# What calls libtorch spends its time there, and what libtorch's headers instantiate takes a third less to compile with -O1. The
# precompiled header serves one level only, so all of these have it; sources with loops of their own are better off in a target
# without libtorch.
if(FOVEA_SANITIZE)
  set(FOVEA_UNTYPED -fno-sanitize=vptr)  # some of libtorch's classes have no type information to compare with
endif()
set(FOVEA_LIGHT_OPTIMISATION $<$<CONFIG:Release,RelWithDebInfo>:-O1>)
function(fovea_torch_target name)
  target_link_libraries(${name} PRIVATE fovea_options PUBLIC Libtorch::torch)
  target_compile_options(${name} PRIVATE ${FOVEA_LIGHT_OPTIMISATION} ${FOVEA_UNTYPED})
  # The first target makes it (a target of its own would need a source, and the emptiest costs those 7 s), so what it defines all
  # must define: nothing.
  set_target_properties(${name} PROPERTIES DEFINE_SYMBOL "")
  get_property(maker GLOBAL PROPERTY FOVEA_TORCH_HEADER_MAKER)
  if(maker)
    target_precompile_headers(${name} REUSE_FROM ${maker})
  else()
    target_precompile_headers(${name} PRIVATE <torch/torch.h>)
    set_property(GLOBAL PROPERTY FOVEA_TORCH_HEADER_MAKER ${name})
  endif()
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
  # Versions that do not fit have other names: before 1.0 a minor version may change what is there. A wheel holds one file, found by path.
  if(NOT SKBUILD)
    set_target_properties(${name} PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  endif()
  # Beside the library, wherever it is moved; libtorch is found by the program that links us, or is in the Python process already.
  set_target_properties(${name} PROPERTIES INSTALL_RPATH "$ORIGIN")
endfunction()

# fovea_test(NAME LABELS label... SOURCES file... [LINK library...] [TIMEOUT seconds] [ENVIRONMENT name=value...]):
# a GoogleTest executable, one ctest case for each test so that a skipped one is reported by name. Labels: engine, torch,
# systems, cli, page, python, and slow besides for what `make test` leaves out: it is not even built there, but by the target slow_tests.
# It sees libtorch, precompiled, when it links a library that does, and Highway when it has the label engine.
function(fovea_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT" "LABELS;SOURCES;LINK;ENVIRONMENT")
  if(NOT arg_LABELS)
    message(FATAL_ERROR "fovea_test(${name}): LABELS missing")
  endif()
  add_executable(${name} ${arg_SOURCES})
  if("fovea" IN_LIST arg_LINK OR "fovea_objects" IN_LIST arg_LINK OR "fovea_systems" IN_LIST arg_LINK)
    fovea_torch_target(${name})
  elseif("engine" IN_LIST arg_LABELS)
    target_link_libraries(${name} PRIVATE fovea_simd)
  endif()
  target_link_libraries(${name} PRIVATE fovea_options ${arg_LINK} GTest::gtest_main)
  target_compile_options(${name} PRIVATE ${FOVEA_LIGHT_OPTIMISATION})  # the work is done by what is tested
  fovea_join(${name} 8)
  if(slow IN_LIST arg_LABELS)
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
    if(NOT TARGET slow_tests)
      add_custom_target(slow_tests)
    endif()
    add_dependencies(slow_tests ${name})
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  if(CMAKE_CROSSCOMPILING)
    math(EXPR arg_TIMEOUT "10 * ${arg_TIMEOUT}")  # emulated
  endif()
  # Discovered when ctest starts, not when the test is linked: a build runs nothing.
  gtest_discover_tests(${name} TEST_PREFIX "${name}." TEST_LIST ${name}_tests DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60)
  # Not through its PROPERTIES, which flattens a list. libtorch's threads wait asleep: spinning, tests that run side by side keep
  # each other from the cores.
  file(GENERATE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/${name}_properties.cmake CONTENT
"foreach(test IN LISTS ${name}_tests)
  set_tests_properties(\${test} PROPERTIES LABELS \"${arg_LABELS}\" TIMEOUT ${arg_TIMEOUT}
    ENVIRONMENT \"FOVEA_SOURCE_DIR=${PROJECT_SOURCE_DIR};OMP_WAIT_POLICY=passive;${arg_ENVIRONMENT}\")
endforeach()
if(NOT EXISTS \"$<TARGET_FILE:${name}>\")
  set_tests_properties(${name}_NOT_BUILT PROPERTIES LABELS \"${arg_LABELS}\")
endif()
")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${CMAKE_CURRENT_BINARY_DIR}/${name}_properties.cmake)
endfunction()
