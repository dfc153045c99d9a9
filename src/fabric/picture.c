/* SPDX-License-Identifier: Apache-2.0 */
/* picture.c - a fabric as a tree, folded: what is alike is drawn once, with a number. */
#include "fabric/topology.h"

#include <string.h>

void hk__draw_line(FILE *file, uint32_t depth, const char *fmt, ...)
{
	va_list args;

	fprintf(file, "%*s", (int)(2 * depth), "");
	va_start(args, fmt);
	vfprintf(file, fmt, args);
	va_end(args);
	fputc('\n', file);
}

/* "nic.out/in" for a kind that has another direction behind it. */
static void kind_title(const struct hk_fabric *fabric, uint32_t kind, char *text, size_t size)
{
	const char *name = fabric->kinds[kind].name, *dot = strrchr(name, '.');
	const char *next = kind + 1 < fabric->nkinds ? fabric->kinds[kind + 1].name : ".";
	const char *end = strrchr(next, '.');

	if (dot - name == end - next && memcmp(name, next, (size_t)(dot - name)) == 0)
		snprintf(text, size, "%s/%s", name, end + 1);
	else
		snprintf(text, size, "%.*s", (int)(dot - name), name);
}

void hk__draw_kind(const struct hk_fabric *fabric, FILE *file, uint32_t depth, uint32_t kind,
		   const char *note)
{
	const struct hk__link_kind *link = &fabric->kinds[kind];
	char title[96];
	int indent = (int)(2 * depth);

	kind_title(fabric, kind, title, sizeof(title));
	fprintf(file, "%*s%-*s %9.6g GB/s %7.5g ns", indent, "", 32 - indent, title,
		link->bytes_per_ns, link->delay_ns);
	if (link->width > 1)
		fprintf(file, "  %u wires%s", link->width,
			link->routing == HK__ROUTE_HASH ? ", by hash" : "");
	if (note)
		fprintf(file, "  %s", note);
	fputc('\n', file);
}

static void can_draw(const struct hk_fabric *fabric, FILE *file)
{
	static const struct {
		unsigned bit;
		const char *text;
	} can[] = {
		{ HK__CAN_REDUCE_NODE, "adds inside a node" },
		{ HK__CAN_MULTICAST_NODE, "multicasts inside a node" },
		{ HK__CAN_REDUCE_NET, "adds in the network" },
		{ HK__CAN_MULTICAST_NET, "multicasts in the network" },
	};
	const char *between = "can: ";

	for (size_t i = 0; i < sizeof(can) / sizeof(can[0]); i++)
		if (fabric->can & can[i].bit) {
			fprintf(file, "%s%s", between, can[i].text);
			between = ", ";
		}
	if (fabric->can)
		fputc('\n', file);
}

enum hk_status hk_fabric_print(const struct hk_fabric *fabric, FILE *file, struct hk_why *why)
{
	fprintf(file, "%s: %s\n", fabric->name, fabric->about);
	fprintf(file, "%u device%s, %u node%s, %llu links\n\n", fabric->ranks,
		fabric->ranks == 1 ? "" : "s", fabric->nodes, fabric->nodes == 1 ? "" : "s",
		(unsigned long long)fabric->links);
	fabric->ops->draw(fabric, file);
	fputs("\nwires:", file);
	if (fabric->ranks > fabric->nodes)
		fprintf(file, " %s within a node%s", fabric->wires[fabric->wire_node].name,
			fabric->nodes > 1 ? "," : "");
	if (fabric->nodes > 1 || fabric->ranks == 1)
		fprintf(file, " %s between nodes", fabric->wires[fabric->wire_net].name);
	fputc('\n', file);
	can_draw(fabric, file);
	if (ferror(file))
		return hk__why(why, HK_EIO, "cannot write the picture of %s", fabric->name);
	return HK_OK;
}
