# SPDX-License-Identifier: Apache-2.0
# Code that reads what strangers send is compiled and linked so that a mistake in it is
# hard to use: guarded stacks, checked lengths, tables that are read-only once a program
# runs. Sanitizers check more, and some of this would be in their way.
option(HK_HARDEN "Compile and link with protection against memory errors" ON)

include(CheckCCompilerFlag)
include(CheckCSourceCompiles)
include(CheckPIESupported)
check_pie_supported(LANGUAGES C)

# hk_harden(FLAG) - where the compiler has it for this processor.
function(hk_harden flag)
	string(MAKE_C_IDENTIFIER "HK_HAS${flag}" has)
	check_c_compiler_flag("-Werror ${flag}" ${has})
	if(${has})
		target_compile_options(hk_flags INTERFACE ${flag})
	endif()
endfunction()

if(HK_HARDEN AND NOT HK_SANITIZE)
	hk_harden(-fstack-protector-strong)
	hk_harden(-fstack-clash-protection)
	hk_harden(-fcf-protection)
	# Lengths are checked in what is optimised. Some distributions ask for it already, at a
	# level of their own; older C libraries warn of the third.
	set(CMAKE_REQUIRED_FLAGS "-O2 -Werror -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3")
	check_c_source_compiles("#include <string.h>\nint main(void) { return 0; }" HK_HAS_FORTIFY_3)
	unset(CMAKE_REQUIRED_FLAGS)
	if(HK_HAS_FORTIFY_3)
		set(level 3)
	else()
		set(level 2)
	endif()
	target_compile_options(hk_flags INTERFACE
		$<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=${level}>)
	target_link_options(hk_flags INTERFACE
		-Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)
endif()
