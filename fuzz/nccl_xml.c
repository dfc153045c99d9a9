/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_xml.c - any bytes as NCCL's topology file: a node, or one line that says why not. */
#include "fabric/file/file.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_assert(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "broken: %s\n", what);
	abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hk_why why = { "" };
	struct hk__nccl_node node;
	enum hk_status status = hk__nccl_topology_parse((const char *)data, size, "fuzz",
							&hk__alloc_default, &why, &node);

	if (status == HK_OK) {
		fuzz_assert(node.gpus > 0 && node.nvlink >= 0 && node.pcie >= 0, "no node");
		return 0;
	}
	fuzz_assert(why.text[0] != '\0', "no reason");
	for (const char *c = why.text; *c; c++)
		fuzz_assert((unsigned char)*c >= 0x20 && *c != 0x7f, "not one line of text");
	return 0;
}
