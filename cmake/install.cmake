# Install, find_package(spillway [COMPONENTS align hts gpu tbb jemalloc]) and pkg-config. The libraries are static, so whoever links
# them also links what they use: spillwayConfig.cmake and the .pc files look that up and name the package when it is missing.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/spillway)

# Each component has its own export file, so that a host without htslib can still use the core.
function(spillway_install component)
  install(TARGETS ${ARGN} EXPORT spillway-${component} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT spillway-${component} NAMESPACE spillway:: DESTINATION ${package_dir})
endfunction()

# The pkg-config modules that a target links: "libxxhash;liblz4". Names are those of packages.cmake.
function(spillway_modules result target)
  get_target_property(links ${target} LINK_LIBRARIES)
  set(modules "")
  foreach(link ${links})
    if(link MATCHES "^PkgConfig::(.+)$")
      list(APPEND modules ${${CMAKE_MATCH_1}_MODULE_NAME})
    endif()
  endforeach()
  set(${result} "${modules}" PARENT_SCOPE)
endfunction()

# One .pc file for a target and what its archive needs at link time; ARGN are our own packages below it.
function(spillway_pkgconfig package target description)
  spillway_modules(modules ${target})
  list(JOIN modules " " modules)
  list(JOIN ARGN " " below)
  # Relative, so that the installed tree may be moved.
  file(RELATIVE_PATH to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/spillway.pc.in ${PROJECT_BINARY_DIR}/${package}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${package}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()

spillway_install(align spillway_base spillway_align)
spillway_install(core spillway)
spillway_pkgconfig(spillway-base spillway_base "Errors and value types of Spillway")
spillway_pkgconfig(spillway-align spillway_align "Affine-gap alignment of reads to haplotypes" spillway-base)
spillway_pkgconfig(spillway spillway "${PROJECT_DESCRIPTION}" spillway-base)
spillway_install(gpu spillway_gpu)
# pkg-config knows no CUDA: its static run time is named by its path on this machine.
if(SPILLWAY_CUDA_FOUND)
  set(more_libs "-L${CUDAToolkit_LIBRARY_DIR} -lcudart_static -ldl -lrt")
endif()
spillway_pkgconfig(spillway-gpu spillway_gpu "Alignment on a device, for Spillway's routed stages" spillway-align)
set(more_libs "")
if(TARGET spillway_hts)
  spillway_install(hts spillway_hts)
  spillway_pkgconfig(spillway-hts spillway_hts "Reads, reference and VCF over htslib" spillway-base)
endif()
if(TARGET spillway_tbb)
  spillway_install(tbb spillway_tbb)
endif()
if(TARGET spillway_jemalloc)
  spillway_install(jemalloc spillway_jemalloc)
  install(FILES cmake/malloc_conf.cpp DESTINATION ${CMAKE_INSTALL_DATADIR}/spillway)
endif()

install(DIRECTORY include/spillway DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.hpp")
spillway_modules(core_modules spillway)
configure_package_config_file(cmake/spillwayConfig.cmake.in spillwayConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(spillwayConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/spillwayConfig.cmake ${PROJECT_BINARY_DIR}/spillwayConfigVersion.cmake
        DESTINATION ${package_dir})
