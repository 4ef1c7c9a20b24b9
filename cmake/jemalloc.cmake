# spillway::jemalloc: for executables only. Links jemalloc and compiles its settings into the executable.
# Absent under sanitizers, which bring their own allocator; so link it as $<TARGET_NAME_IF_EXISTS:spillway::jemalloc>.
if(NOT jemalloc_FOUND OR SPILLWAY_SANITIZE)
  return()
endif()
add_library(spillway_jemalloc INTERFACE)
add_library(spillway::jemalloc ALIAS spillway_jemalloc)
set_target_properties(spillway_jemalloc PROPERTIES EXPORT_NAME jemalloc)
target_link_libraries(spillway_jemalloc INTERFACE PkgConfig::jemalloc)
target_sources(spillway_jemalloc INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/cmake/malloc_conf.cpp>
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_DATADIR}/spillway/malloc_conf.cpp>)
