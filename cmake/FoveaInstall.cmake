# `cmake --install`: a relocatable find_package(Fovea CONFIG), and the same for pkg-config. Component `engine` is what needs no libtorch,
# component `fovea` the rest of the libraries, `command` the command; `python` is what the wheel holds. The engine's targets and
# libtorch's are two files, because who links Fovea::engine has no libtorch.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Fovea)
set(pkgconfig_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH prefix_from_pkgconfig /${pkgconfig_dir} /)
string(REGEX REPLACE "/$" "" prefix_from_pkgconfig "${prefix_from_pkgconfig}")

set(engine_headers include/fovea/choices.h include/fovea/elementwise.h include/fovea/engine.h include/fovea/error.h include/fovea/version.h)
install(FILES ${engine_headers} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/fovea COMPONENT engine)
install(DIRECTORY include/fovea/choices DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/fovea COMPONENT engine)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT engine)
# The pages hold a part of a font.
install(FILES web/math-font-LICENSE.txt DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT systems)
install(TARGETS fovea_engine EXPORT FoveaEngine ARCHIVE COMPONENT engine)
install(EXPORT FoveaEngine NAMESPACE Fovea:: DESTINATION ${package_dir} COMPONENT engine)
configure_file(cmake/fovea-engine.pc.in ${PROJECT_BINARY_DIR}/fovea-engine.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/fovea-engine.pc DESTINATION ${pkgconfig_dir} COMPONENT engine)

configure_package_config_file(cmake/FoveaConfig.cmake.in ${PROJECT_BINARY_DIR}/FoveaConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/FoveaConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/FoveaConfig.cmake ${PROJECT_BINARY_DIR}/FoveaConfigVersion.cmake
        DESTINATION ${package_dir} COMPONENT engine)

if(FOVEA_TORCH)
  install(FILES include/fovea/attend.h include/fovea/marginals.h include/fovea/ranks.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/fovea COMPONENT fovea)
  install(DIRECTORY include/fovea/nn DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/fovea COMPONENT fovea)
  install(TARGETS fovea EXPORT FoveaTorch LIBRARY COMPONENT fovea)
  install(EXPORT FoveaTorch NAMESPACE Fovea:: DESTINATION ${package_dir} COMPONENT fovea)
  install(FILES cmake/FindLibtorch.cmake DESTINATION ${package_dir} COMPONENT fovea)
  configure_file(cmake/fovea.pc.in ${PROJECT_BINARY_DIR}/fovea.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/fovea.pc DESTINATION ${pkgconfig_dir} COMPONENT fovea)
  install(TARGETS fovea LIBRARY DESTINATION fovea COMPONENT python EXCLUDE_FROM_ALL)
  # Which torch the wheel is for: python/fovea/_library.py compares before it loads the library.
  file(WRITE ${PROJECT_BINARY_DIR}/built_for_torch.txt "${Libtorch_VERSION}\n")
  install(FILES ${PROJECT_BINARY_DIR}/built_for_torch.txt DESTINATION fovea COMPONENT python EXCLUDE_FROM_ALL)
endif()
