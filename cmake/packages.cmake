# Debian packages: `make deb`, or `cpack` in a build directory that was configured with the preset "package".

set(version ${PROJECT_VERSION})
set(package_of_tool kelvin)
set(package_of_libraries libkelvin${interface_version})
set(package_of_development libkelvin-dev)
set(package_of_python python3-kelvin)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME kelvin)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_THREADS 0)  # one per core compresses
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL tool libraries development python)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)

# Whoever builds a package is its maintainer; these variables are those of Debian's own tools.
set(maintainer_name "$ENV{DEBFULLNAME}")
set(maintainer_address "$ENV{DEBEMAIL}")
if(NOT maintainer_name OR NOT maintainer_address)
  set(maintainer_name "The kelvin developers")
  set(maintainer_address "kelvin@localhost")
endif()
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "${maintainer_name} <${maintainer_address}>")

# What the programs link is found by dpkg-shlibdeps; that the tool loads libkelvin it cannot see.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR})

set(about "kelvin measures and controls what the temperature of a softmax does to a
network: the rank of its logits, the number of layers that do the work, and
its behaviour on out-of-distribution data.")

set(CPACK_DEBIAN_TOOL_PACKAGE_NAME ${package_of_tool})
set(CPACK_DEBIAN_TOOL_PACKAGE_SECTION science)
set(CPACK_DEBIAN_TOOL_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_TOOL_PACKAGE_DEPENDS "${package_of_libraries} (= ${version})")
set(CPACK_DEBIAN_TOOL_PACKAGE_RECOMMENDS ca-certificates)
set(CPACK_DEBIAN_TOOL_PACKAGE_SUGGESTS "${package_of_python}, bash-completion")
set(CPACK_DEBIAN_TOOL_DESCRIPTION "rank and softmax temperature of neural networks (tool)
${about}
.
This package has the command-line tool, its manual pages and completions.")

# Without an optimized BLAS LibTorch multiplies matrices with the reference one, many times slower.
set(CPACK_DEBIAN_LIBRARIES_PACKAGE_NAME ${package_of_libraries})
set(CPACK_DEBIAN_LIBRARIES_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIBRARIES_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_LIBRARIES_PACKAGE_RECOMMENDS libopenblas0-pthread)
set(CPACK_DEBIAN_LIBRARIES_DESCRIPTION "rank and softmax temperature of neural networks (libraries)
${about}
.
This package has the shared libraries, and the operators for PyTorch.")

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME ${package_of_development})
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
    "${package_of_libraries} (= ${version}), libtorch-dev, nlohmann-json3-dev")
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION "rank and softmax temperature of neural networks (headers)
${about}
.
This package has the C++ headers and the CMake package: find_package(kelvin).")

set(CPACK_DEBIAN_PYTHON_PACKAGE_NAME ${package_of_python})
set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
set(CPACK_DEBIAN_PYTHON_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS "python3 (>= 3.9), ${package_of_tool} (>= ${version})")
set(CPACK_DEBIAN_PYTHON_PACKAGE_RECOMMENDS "python3-torch, python3-numpy")
set(CPACK_DEBIAN_PYTHON_PACKAGE_SUGGESTS python3-pandas)
set(CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_EXTRA
    "${PROJECT_SOURCE_DIR}/cmake/python3-kelvin/postinst;${PROJECT_SOURCE_DIR}/cmake/python3-kelvin/prerm")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PYTHON_DESCRIPTION "rank and softmax temperature of neural networks (Python)
${about}
.
This package has the Python package: it records what a PyTorch network does,
has the tool measure it, and offers the operators.")

# Each package says where it comes from; `cmake --install` leaves this out.
foreach(component ${CPACK_COMPONENTS_ALL})
  install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${package_of_${component}}
          RENAME copyright COMPONENT ${component} EXCLUDE_FROM_ALL)
endforeach()

include(CPack)
