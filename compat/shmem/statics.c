/* SPDX-License-Identifier: Apache-2.0 */
/*
 * statics.c - where the executable keeps its globals and statics: the writable segment that
 * its program headers name, without the part that the loader makes read-only (RELRO). Asked
 * of the loader and not of /proc/self/maps, so it does not depend on where the executable
 * was loaded, or what lies beside it.
 */
#include "sma.h"

#include <link.h>
#include <unistd.h>

struct found {
	uintptr_t start;
	uintptr_t end;
};

static int visit(struct dl_phdr_info *info, size_t size, void *arg)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	struct found *found = arg;
	uintptr_t relro = 0, relro_end = 0;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];

		if (header->p_type == PT_GNU_RELRO) {
			relro = (info->dlpi_addr + header->p_vaddr) & ~(page - 1);
			/* As the loader does: a page that is in it in part stays writable. */
			relro_end =
				(info->dlpi_addr + header->p_vaddr + header->p_memsz) & ~(page - 1);
		}
	}
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];
		uintptr_t start = (info->dlpi_addr + header->p_vaddr) & ~(page - 1);
		uintptr_t end = (info->dlpi_addr + header->p_vaddr + header->p_memsz + page - 1) &
				~(page - 1);

		if (header->p_type != PT_LOAD || !(header->p_flags & PF_W))
			continue;
		if (start < relro_end && relro < end)
			start = relro_end;
		if (start < end && end - start > found->end - found->start)
			*found = (struct found){ start, end };
	}
	return 1; /* the first entry is the executable */
}

bool hk__sma_statics_find(void **start_out, size_t *bytes_out)
{
	struct found found = { 0 };

	dl_iterate_phdr(visit, &found);
	*start_out = (void *)found.start; /* NOLINT(performance-no-int-to-ptr): the loader's */
	*bytes_out = found.end - found.start;
	return found.end > found.start;
}
