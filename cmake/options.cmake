# How every target of the project is compiled. Nothing here reaches the projects that link us.
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()

option(SPILLWAY_WERROR "Treat warnings as errors" ${PROJECT_IS_TOP_LEVEL})
add_library(spillway_warnings INTERFACE)
target_compile_options(spillway_warnings INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion
                                                   -Wnon-virtual-dtor -Woverloaded-virtual $<$<BOOL:${SPILLWAY_WERROR}>:-Werror>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 sees overflows in the inlined code of std::vector and std::string that cannot happen (its bugs 105329, 105651).
  target_compile_options(spillway_warnings INTERFACE -Wno-array-bounds -Wno-restrict -Wno-stringop-overflow)
endif()
# Float results reach the output, so no contraction: the same bytes on machines with and without FMA.
add_compile_options(-ffp-contract=off)

if(SPILLWAY_SANITIZE)
  # What the build type says of optimising and debugging is overruled: with address and undefined together, GCC takes
  # two and a half times as long for -O2 -g, and finds no more.
  add_compile_options(-fsanitize=${SPILLWAY_SANITIZE} -fno-omit-frame-pointer -O1 -g1)
  add_link_options(-fsanitize=${SPILLWAY_SANITIZE})
  if(SPILLWAY_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize-recover=all)
  endif()
  if(SPILLWAY_SANITIZE MATCHES "address" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # With these checks GCC 12 takes std::function's storage for uninitialised.
    add_compile_options(-Wno-maybe-uninitialized)
  endif()
  if(SPILLWAY_SANITIZE MATCHES "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # ThreadSanitizer does not model fences; the protocols that use them are checked by the interleaving tests and Spin.
    add_compile_options(-Wno-tsan)
  endif()
endif()
