# Writes OUTPUT with the git revision of SOURCE, "unknown" outside a repository; untouched when nothing changed.
execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=12 OUTPUT_VARIABLE revision RESULT_VARIABLE failed
                OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(failed OR revision STREQUAL "")
  set(revision unknown)
endif()
set(text "// SPDX-License-Identifier: Apache-2.0\n// Generated.\nnamespace omnibench {\ninline constexpr const char* kGitRevision = \"${revision}\";\n}\n")
set(old "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} old)
endif()
if(NOT old STREQUAL text)
  file(WRITE ${OUTPUT} "${text}")
endif()
