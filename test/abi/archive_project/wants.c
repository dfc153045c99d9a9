/* SPDX-License-Identifier: Apache-2.0 */
/* wants.c - a shared library that uses one function of expat. */
#include <expat.h>

const char *wants(void);

const char *wants(void)
{
	return XML_ErrorString(XML_ERROR_NONE);
}
