/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expat.c - what becomes a libexpat.a. It takes the address of a variable of the C
 * library: compiled as position-dependent code that cannot be part of a shared library,
 * on any processor.
 */
#include <expat.h>
#include <stdio.h>

const XML_LChar *XML_ErrorString(enum XML_Error code)
{
	return code == XML_ERROR_NONE && stderr ? "of an archive" : 0;
}
