# cmake -DSOURCE_DIR=... -DOUTPUT=... -P write_commit.cmake
# Writes the commit, with "-dirty" for a changed work tree, into a header; touches it only on change.
execute_process(COMMAND git -C ${SOURCE_DIR} describe --always --dirty --abbrev=12 --exclude=*
                OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT commit)
  set(commit unknown)
endif()
set(text "#define KELVIN_COMMIT \"${commit}\"\n")
set(written "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} written)
endif()
if(NOT written STREQUAL text)
  file(WRITE ${OUTPUT} "${text}")
endif()
