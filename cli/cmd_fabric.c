/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_fabric.c - `hocket fabric`: what fabrics there are, and what one is made of. */
#include "cli.h"

#include <hocket/fabric.h>

#include <errno.h>
#include <getopt.h>
#include <string.h>

/* clang-format off */
static const char fabric_help[] =
	"Usage: hocket fabric list [--json]\n"
	"       hocket fabric show FABRIC [--constants] [--what-if CHANGES] [-o FILE] [--json]\n"
	"       hocket fabric check FILE [--json]\n"
	"       hocket fabric discover [--constants] [-o FILE] [--json]\n"
	"Lists the built-in fabrics, prints one, checks a fabric file, or prints this\n"
	"machine. FABRIC is a name with a size (dgx-h100:16), a file (FILE.yaml), or\n"
	"'here', this machine.\n\n"
	"      --constants  list every constant with its source\n"
	"      --what-if L  change constants: nic.bw=2x,nic.delay=300\n"
	"  -o, --output F   write a fabric file (hocket-fabric(5)) that can be edited\n"
	"      --json       print JSON\n\n"
	"Example: hocket fabric show dgx-h100:16\n"
	"         hocket fabric show dgx-h100:16,net=ethernet --constants\n"
	"         hocket fabric show dgx-h100:16 -o mine.yaml && hocket fabric check mine.yaml\n";
/* clang-format on */

struct fabric_args {
	const char *action, *what, *output, *what_if;
	bool constants, json;
};

/* ---- list ---- */

static int fabric_list(const struct fabric_args *args)
{
	struct hk_fabric_name name = { .size = sizeof(name) };

	if (args->json)
		fputs("{\"fabrics\": [", stdout);
	else
		printf("%-16s%-24s%s\n", "name", "size", "what");
	for (uint32_t i = 0; hk_fabric_name_get(i, &name); i++) {
		if (!args->json) {
			printf("%-16s%-24s%s\n", name.name, name.scale, name.about);
			if (*name.options)
				printf("%-16s%s\n", "", name.options);
			continue;
		}
		printf("%s\n  {\"name\": ", i ? "," : "");
		cli_json_string(stdout, name.name);
		fputs(", \"size\": ", stdout);
		cli_json_string(stdout, name.scale);
		fputs(", \"options\": ", stdout);
		cli_json_string(stdout, name.options);
		fputs(", \"about\": ", stdout);
		cli_json_string(stdout, name.about);
		fputc('}', stdout);
	}
	if (args->json)
		puts("\n]}");
	else
		puts("\nAs NAME:SIZE, with options behind commas: dgx-h100:128,net=ethernet");
	return CLI_DONE;
}

/* ---- show ---- */

static void fabric_json(const struct hk_fabric *fabric, bool constants)
{
	struct hk_fabric_info info = { .size = sizeof(info) };
	struct hk_fabric_constant constant = { .size = sizeof(constant) };

	hk_fabric_describe(fabric, &info);
	fputs("{\"name\": ", stdout);
	cli_json_string(stdout, info.name);
	fputs(", \"about\": ", stdout);
	cli_json_string(stdout, info.about);
	printf(",\n \"ranks\": %u, \"nodes\": %u, \"node_ranks\": %u, \"links\": %llu", info.ranks,
	       info.nodes, info.node_ranks, (unsigned long long)info.links);
	if (constants)
		fputs(",\n \"constants\": [", stdout);
	for (uint32_t i = 0; constants && hk_fabric_constant(fabric, i, &constant); i++) {
		printf("%s\n  {\"name\": ", i ? "," : "");
		cli_json_string(stdout, constant.name);
		printf(", \"value\": %.17g, \"unit\": ", constant.value);
		cli_json_string(stdout, constant.unit);
		fputs(", \"source\": ", stdout);
		cli_json_string(stdout, constant.source);
		fputc('}', stdout);
	}
	puts(constants ? "\n]}" : "}");
}

static void fabric_constants(const struct hk_fabric *fabric)
{
	struct hk_fabric_constant constant = { .size = sizeof(constant) };
	int wide = 8;

	for (uint32_t i = 0; hk_fabric_constant(fabric, i, &constant); i++)
		wide = (int)strlen(constant.name) > wide ? (int)strlen(constant.name) : wide;
	printf("\n%-*s %12s %-5s source\n", wide, "constant", "value", "unit");
	for (uint32_t i = 0; hk_fabric_constant(fabric, i, &constant); i++)
		printf("%-*s %12.6g %-5s %s\n", wide, constant.name, constant.value, constant.unit,
		       constant.source);
}

static int fabric_write(const struct hk_fabric *fabric, const char *path)
{
	struct hk_why why = { "" };
	FILE *file = fopen(path, "w");

	if (!file)
		return cli_wrong("fabric", "cannot write %s: %s", path, strerror(errno));
	enum hk_status status = hk_fabric_print_file(fabric, file, &why);
	if (fclose(file) != 0 && status == HK_OK)
		return cli_wrong("fabric", "cannot write %s: %s", path, strerror(errno));
	return status == HK_OK ? CLI_DONE : cli_wrong("fabric", "%s", why.text);
}

/* "nic.bw=2x,nic.delay=300" */
static bool fabric_change(struct hk_fabric *fabric, const char *changes)
{
	struct hk_why why = { "" };
	char change[128];

	for (const char *at = changes; at && *at; at += *at == ',') {
		size_t len = strcspn(at, ",");

		snprintf(change, sizeof(change), "%.*s", (int)len, at);
		if (len >= sizeof(change) || hk_fabric_change(fabric, change, &why) != HK_OK) {
			cli_wrong("fabric", "%s",
				  why.text[0] ? why.text : "the change is too long");
			return false;
		}
		at += len;
	}
	return true;
}

static int fabric_shown(const struct fabric_args *args, struct hk_fabric *fabric)
{
	struct hk_why why = { "" };

	if (!fabric_change(fabric, args->what_if))
		return CLI_WRONG;
	if (args->output)
		return fabric_write(fabric, args->output);
	if (args->json) {
		fabric_json(fabric, args->constants);
		return CLI_DONE;
	}
	if (hk_fabric_print(fabric, stdout, &why) != HK_OK)
		return cli_wrong("fabric", "%s", why.text);
	if (args->constants)
		fabric_constants(fabric);
	return CLI_DONE;
}

static int fabric_show(const struct fabric_args *args)
{
	struct hk_why why = { "" };
	struct hk_fabric *fabric;

	if (hk_fabric_create(args->what, NULL, &why, &fabric) != HK_OK)
		return cli_wrong("fabric", "%s", why.text);
	int status = fabric_shown(args, fabric);
	hk_fabric_free(fabric);
	return status;
}

static int fabric_discover(const struct fabric_args *args)
{
	struct hk_why why = { "" };
	struct hk_fabric *fabric;

	if (hk_fabric_discover(NULL, &why, &fabric) != HK_OK)
		return cli_wrong("fabric", "%s", why.text);
	int status = fabric_shown(args, fabric);
	hk_fabric_free(fabric);
	return status;
}

static int fabric_check(const struct fabric_args *args)
{
	struct hk_why why = { "" };
	struct hk_fabric *fabric;
	struct hk_fabric_info info = { .size = sizeof(info) };
	char path[1024];

	/* Here a plain word is a file, too. */
	snprintf(path, sizeof(path), "%s%.1000s", strchr(args->what, '/') ? "" : "./", args->what);
	if (hk_fabric_create(path, NULL, &why, &fabric) != HK_OK)
		return cli_wrong("fabric", "%s", why.text);
	if (args->json) {
		fabric_json(fabric, args->constants);
	} else {
		hk_fabric_describe(fabric, &info);
		printf("%s: good: %s, %u devices, %u nodes, %llu links\n", args->what, info.name,
		       info.ranks, info.nodes, (unsigned long long)info.links);
	}
	hk_fabric_free(fabric);
	return CLI_DONE;
}

/* ---- the command ---- */

static bool fabric_parse(struct fabric_args *args, int argc, char **argv, bool *help_out)
{
	static const struct option options[] = {
		{ "constants", no_argument, NULL, 'c' },     { "json", no_argument, NULL, 'j' },
		{ "output", required_argument, NULL, 'o' },  { "help", no_argument, NULL, 'h' },
		{ "what-if", required_argument, NULL, 'w' }, { NULL, 0, NULL, 0 },
	};
	int option;

	opterr = 0;
	optind = 1;
	while ((option = getopt_long(argc, argv, ":o:h", options, NULL)) != -1) {
		if (option == 'c')
			args->constants = true;
		else if (option == 'j')
			args->json = true;
		else if (option == 'o')
			args->output = optarg;
		else if (option == 'w')
			args->what_if = optarg;
		else if (option == 'h')
			*help_out = true;
		else {
			cli_wrong_option("fabric", option, argv[optind - 1]);
			return false;
		}
	}
	args->action = optind < argc ? argv[optind++] : NULL;
	args->what = optind < argc ? argv[optind++] : NULL;
	if (optind < argc)
		cli_wrong("fabric", "unexpected argument '%s'", argv[optind]);
	return optind >= argc;
}

static int fabric_main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(const struct fabric_args *args);
		const char *needs; /* what it is about; NULL: nothing */
		bool shows;	   /* takes --constants, --what-if and -o */
	} actions[] = {
		{ "list", fabric_list, NULL, false },
		{ "show", fabric_show, "a fabric, as dgx-h100:16", true },
		{ "check", fabric_check, "a file", false },
		{ "discover", fabric_discover, NULL, true },
	};
	struct fabric_args args = { .action = NULL };
	bool help = false;

	if (!fabric_parse(&args, argc, argv, &help))
		return CLI_WRONG;
	if (help) {
		fputs(fabric_help, stdout);
		return CLI_DONE;
	}
	for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++) {
		if (!args.action || strcmp(args.action, actions[i].name) != 0)
			continue;
		if (actions[i].needs && !args.what)
			return cli_wrong("fabric", "%s needs %s", args.action, actions[i].needs);
		if (!actions[i].needs && args.what)
			return cli_wrong("fabric", "%s takes no argument, found '%s'", args.action,
					 args.what);
		if (!actions[i].shows && (args.constants || args.output || args.what_if))
			return cli_wrong("fabric",
					 "%s takes no --constants, no --what-if and no --output",
					 args.action);
		return actions[i].run(&args);
	}
	return cli_wrong("fabric", "expected list, show, check or discover, found '%s'",
			 args.action ? args.action : "nothing");
}

const struct cli_command cli_fabric = {
	.name = "fabric",
	.about = "list, show, check and discover fabrics: machines and their links",
	.main = fabric_main,
};
