# Finds libtorch and defines Libtorch::torch. Looks in LIBTORCH_DIR (a variable or the environment's), then at the active
# Python's torch, then in the project's .venv; the first that is new enough serves. Links libtorch's CPU half, and its CUDA half
# only with FOVEA_CUDA: the CUDA wheel then serves a CPU build as it is, and nobody is asked for a CUDA toolkit.
include(FindPackageHandleStandardArgs)

# Sets `version` (empty when DIR holds no libtorch) and `old_abi` from DIR's own files.
function(libtorch_inspect dir version old_abi)
  set(found "")
  if(EXISTS ${dir}/lib/libtorch_cpu.so)
    foreach(header torch/headeronly/version.h torch/csrc/api/include/torch/version.h)
      if(EXISTS ${dir}/include/${header})
        file(STRINGS ${dir}/include/${header} lines REGEX "define TORCH_VERSION_(MAJOR|MINOR|PATCH) [0-9]+")
        string(REGEX REPLACE "[^0-9;]" "" numbers "${lines}")
        list(JOIN numbers "." found)
        if(found)
          break()
        endif()
      endif()
    endforeach()
  endif()
  set(${version} "${found}" PARENT_SCOPE)
  # Wheels before 2.7 keep std::string's layout of 2014, which Debian's libraries do not: they do not link together.
  set(flags "")
  if(EXISTS ${dir}/share/cmake/Torch/TorchConfig.cmake)
    file(STRINGS ${dir}/share/cmake/Torch/TorchConfig.cmake flags REGEX "_GLIBCXX_USE_CXX11_ABI=0")
  endif()
  set(${old_abi} "${flags}" PARENT_SCOPE)
endfunction()

if(NOT LIBTORCH_DIR AND DEFINED ENV{LIBTORCH_DIR})
  set(LIBTORCH_DIR "$ENV{LIBTORCH_DIR}")
endif()
set(libtorch_candidates "${LIBTORCH_DIR}")
if(NOT LIBTORCH_DIR)
  # find_spec, not import: a tenth of a second rather than three. origin: the folder torch/ of this project is no package.
  set(libtorch_ask "import importlib.util as u; s = u.find_spec('torch'); print(s.submodule_search_locations[0] if s and s.origin else '')")
  # Python_EXECUTABLE: the Python that builds the wheel.
  foreach(python "${Python_EXECUTABLE}" "$ENV{VIRTUAL_ENV}/bin/python" python3 "${PROJECT_SOURCE_DIR}/.venv/bin/python")
    execute_process(COMMAND ${python} -c "${libtorch_ask}" OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE
                    ERROR_QUIET RESULT_VARIABLE failed)
    if(NOT failed AND found)
      list(APPEND libtorch_candidates ${found})
    endif()
  endforeach()
endif()

set(libtorch_refused "")
set(libtorch_wanted ${Libtorch_FIND_VERSION})
foreach(candidate IN LISTS libtorch_candidates)
  libtorch_inspect("${candidate}" version old_abi)
  if(NOT version)
    string(APPEND libtorch_refused "\n  ${candidate}: holds no lib/libtorch_cpu.so with its headers")
  elseif(version VERSION_LESS "${libtorch_wanted}")
    string(APPEND libtorch_refused "\n  ${candidate}: libtorch ${version} is older than ${libtorch_wanted}")
  elseif(Libtorch_FIND_VERSION_EXACT AND NOT version VERSION_EQUAL libtorch_wanted)
    string(APPEND libtorch_refused "\n  ${candidate}: libtorch ${version} is not the ${libtorch_wanted} this was built with")
  elseif(old_abi)
    string(APPEND libtorch_refused "\n  ${candidate}: libtorch ${version} was built with the old C++ ABI; take 2.7 or newer")
  elseif(FOVEA_CUDA AND NOT EXISTS ${candidate}/lib/libtorch_cuda.so)
    string(APPEND libtorch_refused "\n  ${candidate}: libtorch ${version} has no CUDA half, which FOVEA_CUDA asks for")
  else()
    set(LIBTORCH_DIR "${candidate}" CACHE PATH "libtorch: the folder with include/ and lib/" FORCE)
    set(Libtorch_LIBRARY ${candidate}/lib/libtorch_cpu.so)
    set(Libtorch_VERSION ${version})
    break()
  endif()
endforeach()

find_package_handle_standard_args(
  Libtorch REQUIRED_VARS Libtorch_LIBRARY VERSION_VAR Libtorch_VERSION
  REASON_FAILURE_MESSAGE "run scripts/setup, or give -DLIBTORCH_DIR=<folder with include/ and lib/>.${libtorch_refused}")

if(Libtorch_FOUND AND NOT TARGET Libtorch::torch)
  set(libtorch_libraries ${LIBTORCH_DIR}/lib/libtorch_cpu.so ${LIBTORCH_DIR}/lib/libc10.so)
  if(FOVEA_CUDA)
    # Nothing refers to the CUDA half by name: it registers itself when loaded, so the linker must not drop it.
    list(APPEND libtorch_libraries -Wl,--push-state,--no-as-needed ${LIBTORCH_DIR}/lib/libtorch_cuda.so
         ${LIBTORCH_DIR}/lib/libc10_cuda.so -Wl,--pop-state)
  endif()
  # at::parallel_for is a template that runs serially unless compiled with OpenMP. It must find libtorch's own libgomp,
  # not a second one with threads of its own: only GCC compiles for libgomp. Another compiler would need a library of its own
  # (and clang its header, which Debian has in another package); attend then runs on the engine's threads.
  file(GLOB libtorch_gomp ${LIBTORCH_DIR}/lib/libgomp*.so* ${LIBTORCH_DIR}/../torch.libs/libgomp*.so*)
  if(libtorch_gomp)
    list(GET libtorch_gomp 0 libtorch_gomp)
  else()
    set(libtorch_gomp -fopenmp)
  endif()

  add_library(Libtorch::torch INTERFACE IMPORTED GLOBAL)
  target_include_directories(Libtorch::torch SYSTEM INTERFACE ${LIBTORCH_DIR}/include
                                                              ${LIBTORCH_DIR}/include/torch/csrc/api/include)
  target_compile_options(Libtorch::torch INTERFACE $<$<CXX_COMPILER_ID:GNU>:-fopenmp>)
  # libtorch exports templates such as const_data_ptr<float>() under the names that GCC gives them. Since 18 clang writes the kind of an
  # enable_if parameter into the name, and the linker finds nothing.
  target_compile_options(Libtorch::torch INTERFACE
    $<$<AND:$<CXX_COMPILER_ID:Clang>,$<VERSION_GREATER_EQUAL:$<CXX_COMPILER_VERSION>,18>>:-fclang-abi-compat=17>)
  target_link_libraries(Libtorch::torch INTERFACE ${libtorch_libraries} $<$<CXX_COMPILER_ID:GNU>:${libtorch_gomp}>)
  # libtorch_cpu.so of the CUDA wheel needs libraries (NVIDIA's) that only the loader finds. Where libtorch itself is, CMake tells programs
  # in a build tree, and takes it out of what is installed.
  target_link_options(Libtorch::torch INTERFACE -Wl,--allow-shlib-undefined)
endif()
