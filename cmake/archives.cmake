# SPDX-License-Identifier: Apache-2.0

# hk_archive_links(RESULT ARCHIVE SYMBOL...) - whether these symbols of a static archive,
# and what they need of it, can become part of a shared library that hides them.
# Distributions differ: Debian's libexpat.a is position-independent code and Ubuntu's is
# not. Only the linker knows, so it is asked, once for each archive.
function(hk_archive_links result archive)
	string(MAKE_C_IDENTIFIER "HK_LINKS${archive}" known)
	if(NOT DEFINED ${known})
		set(folder ${PROJECT_BINARY_DIR}/CMakeFiles/hk_archive_links)
		file(WRITE ${folder}/empty.c "int hk_archive_links;\n")
		file(WRITE ${folder}/hidden.map "{ local: *; };\n")
		list(TRANSFORM ARGN PREPEND -Wl,-u, OUTPUT_VARIABLE wanted)
		try_compile(${known} ${folder}/build SOURCES ${folder}/empty.c
			COMPILE_DEFINITIONS -fPIC
			LINK_OPTIONS -shared ${wanted} -Wl,--version-script=${folder}/hidden.map
				-Wl,-Bsymbolic
			LINK_LIBRARIES ${archive}
			OUTPUT_VARIABLE output)
		set(${known} ${${known}} CACHE INTERNAL "${archive} links into a shared library")
		file(APPEND ${folder}/log "${archive}: ${${known}}\n${output}\n")
	endif()
	set(${result} ${${known}} PARENT_SCOPE)
endfunction()

# hk_archive(NAME TARGET SYMBOL...) - appends lib<NAME>.a to the variable `inside`, or the
# imported shared library TARGET where that archive is missing or does not link, which is
# said.
macro(hk_archive name target)
	find_library(HK_ARCHIVE_${name} lib${name}.a HINTS
		${EXPAT_LIBRARY_DIRS} ${SODIUM_LIBRARY_DIRS} ${YAML_LIBRARY_DIRS})
	mark_as_advanced(HK_ARCHIVE_${name})
	set(links OFF)
	if(HK_ARCHIVE_${name})
		hk_archive_links(links ${HK_ARCHIVE_${name}} ${ARGN})
		set(why "${HK_ARCHIVE_${name}} cannot be linked into a shared library")
	else()
		set(why "there is no lib${name}.a")
	endif()
	if(links)
		list(APPEND inside ${HK_ARCHIVE_${name}})
	else()
		list(APPEND inside ${target})
		message(NOTICE "hocket: libnccl.so.2 will load lib${name}.so, as ${why}")
	endif()
endmacro()
