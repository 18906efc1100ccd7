# What every target of the project shares.
add_library(fovea_options INTERFACE)
target_compile_options(fovea_options INTERFACE -Wall -Wextra)
target_include_directories(fovea_options INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
                                                   $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)
option(FOVEA_WERROR "Treat warnings as errors" OFF)
if(FOVEA_WERROR)
  target_compile_options(fovea_options INTERFACE -Werror)
endif()
