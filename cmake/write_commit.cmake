# cmake -DSOURCE_DIR=... -DOUTPUT=... -P write_commit.cmake
# Writes the commit, with "-dirty" for a changed work tree, and its date into a header; touches it only on change.
execute_process(COMMAND git -C ${SOURCE_DIR} describe --always --dirty --abbrev=12 --exclude=*
                OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT commit)
  set(commit unknown)
endif()
execute_process(COMMAND git -C ${SOURCE_DIR} log -1 --format=%cs OUTPUT_VARIABLE date
                OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
set(text "#define KELVIN_COMMIT \"${commit}\"\n#define KELVIN_DATE \"${date}\"\n")
set(written "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} written)
endif()
if(NOT written STREQUAL text)
  file(WRITE ${OUTPUT} "${text}")
endif()
