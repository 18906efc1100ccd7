# How everything is compiled. As a part of another project our targets are compiled as that project says: its build type, its flags, its
# output folders, its compiler launcher. Nothing here reaches the project's own targets either way.
if(NOT CMAKE_CXX_STANDARD OR CMAKE_CXX_STANDARD LESS 20)
  set(CMAKE_CXX_STANDARD 20)
endif()
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)

if(PROJECT_IS_TOP_LEVEL)
  set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
  # All binaries in build/bin and build/lib, whatever folder they come from.
  set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
  set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
  set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)

  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Release, Debug, RelWithDebInfo" FORCE)
  endif()
  # -O2 everywhere, -O3 where it pays (the engine sets it): libtorch's headers take a third longer at -O3.
  set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
  set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1")
  set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g1")
endif()

# Not CMAKE_POSITION_INDEPENDENT_CODE: it gives executables -fPIE, and GCC then refuses a header precompiled with -fPIC.
add_compile_options(-fPIC)

set(FOVEA_SANITIZE "" CACHE STRING "Sanitisers, for example address,undefined")
if(FOVEA_SANITIZE)
  add_compile_options(-fsanitize=${FOVEA_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${FOVEA_SANITIZE})
endif()

option(FOVEA_FUZZ "Programs for libFuzzer, which needs clang; preset fuzz" OFF)
if(FOVEA_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

if(DEFINED ENV{CI} AND PROJECT_IS_TOP_LEVEL)
  set(werror_default ON)
else()
  set(werror_default OFF)
endif()
option(FOVEA_WERROR "Treat warnings as errors (on where CI is set)" ${werror_default})

# What our own targets share; not exported to those who link us.
add_library(fovea_options INTERFACE)
# Designated initialisers are our named arguments: a member left out has its default, and GCC warns of it all the same.
# In std::stable_sort libstdc++ 12 uses what it deprecates, which clang 19 reports as ours; GCC reports what is.
target_compile_options(fovea_options INTERFACE -Wall -Wextra -Wno-missing-field-initializers
                       $<$<CXX_COMPILER_ID:Clang>:-Wno-deprecated-declarations> $<$<BOOL:${FOVEA_WERROR}>:-Werror>)
# For quotes only: our folder torch/ must not come before libtorch's in <torch/...>.
target_compile_options(fovea_options INTERFACE "SHELL:-iquote ${PROJECT_SOURCE_DIR}")
target_include_directories(fovea_options INTERFACE ${PROJECT_SOURCE_DIR}/include)

if(PROJECT_IS_TOP_LEVEL)
  find_program(CCACHE ccache)
endif()
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER AND PROJECT_IS_TOP_LEVEL)
  # The sloppiness is what ccache asks for with precompiled headers; the base directory lets checkouts share results; the inode
  # cache spares it the reading of 700 MB of precompiled header for every file.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 CCACHE_INODECACHE=1 ${CCACHE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-fpch-preprocess)
  endif()
endif()
