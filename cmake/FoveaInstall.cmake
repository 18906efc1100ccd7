# `cmake --install`: a relocatable find_package(Fovea CONFIG). The engine's targets and libtorch's are two files, because who links
# Fovea::engine has no libtorch. Component `python` is what the wheel holds.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Fovea)

install(FILES include/fovea/choices.h include/fovea/engine.h include/fovea/error.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/fovea)
install(TARGETS fovea_engine EXPORT FoveaEngine)
install(EXPORT FoveaEngine NAMESPACE Fovea:: DESTINATION ${package_dir})

if(FOVEA_TORCH)
  install(DIRECTORY include/fovea DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
  install(TARGETS fovea EXPORT FoveaTorch)
  install(EXPORT FoveaTorch NAMESPACE Fovea:: DESTINATION ${package_dir})
  install(FILES cmake/FindLibtorch.cmake DESTINATION ${package_dir})
  install(TARGETS fovea LIBRARY DESTINATION fovea COMPONENT python EXCLUDE_FROM_ALL)
endif()

configure_package_config_file(cmake/FoveaConfig.cmake.in ${PROJECT_BINARY_DIR}/FoveaConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/FoveaConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/FoveaConfig.cmake ${PROJECT_BINARY_DIR}/FoveaConfigVersion.cmake
        DESTINATION ${package_dir})
