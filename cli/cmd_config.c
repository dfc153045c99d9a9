/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_config.c - `hocket config`: environment variables, what they are and what they take. */
#include "cli.h"

#include <string.h>
#include <unistd.h>

/* clang-format off */
static const char config_help[] =
	"Usage: hocket config [NAME] [--json]\n"
	"Prints the environment variables of Hocket: the value in effect, whether it is set in\n"
	"the environment or the default, the default, and what it is for. Without NAME, all.\n"
	"Fails if one is set to what it does not take, or is not known.\n\n"
	"      --json       for programs; with types, and what each takes\n\n"
	"Example: hocket config HOCKET_TIMEOUT\n";
/* clang-format on */

/* What is shown of a value: no key, and no control characters. */
struct shown {
	char text[256];
};

static struct shown config_show(const struct hk_env_info *info)
{
	const char *text = info->text ? info->text : info->usual;
	struct shown shown;

	if (info->text && info->secret)
		text = "(set)";
	snprintf(shown.text, sizeof(shown.text), "%s", text ? text : "-");
	cli_one_line(shown.text);
	return shown;
}

/* How wide the columns are; a value that is very long pushes what follows to the right. */
#define WIDTH_MAX 40

struct widths {
	int name, value, usual;
};

static void width_grow(int *width, const char *text)
{
	int len = (int)strlen(text);

	if (len > *width)
		*width = len < WIDTH_MAX ? len : WIDTH_MAX;
}

static struct widths config_widths(const char *only)
{
	struct hk_env_info info = { .size = sizeof(info) };
	struct widths widths = { .name = 4, .value = 5, .usual = 7 }; /* of the headings */

	for (uint32_t i = 0; hk_env_get(i, &info); i++) {
		struct shown value = config_show(&info);

		if (only && strcmp(only, info.name) != 0)
			continue;
		width_grow(&widths.name, info.name);
		width_grow(&widths.value, value.text);
		width_grow(&widths.usual, info.usual ? info.usual : "-");
	}
	return widths;
}

static void config_line(const struct widths *widths, const char *name, const char *value,
			const char *from, const char *usual, const char *about)
{
	printf("%-*s  %-*s  %-11s  %-*s  %s\n", widths->name, name, widths->value, value, from,
	       widths->usual, usual, about);
}

static void config_text(const struct widths *widths, const struct hk_env_info *info)
{
	struct shown value = config_show(info);

	config_line(widths, info->name, value.text, info->text ? "environment" : "default",
		    info->usual ? info->usual : "-", info->about);
}

static void config_field(const char *name, const char *value)
{
	printf(", \"%s\": ", name);
	if (value)
		cli_json_string(stdout, value);
	else
		fputs("null", stdout);
}

static void config_json(const struct hk_env_info *info, bool first)
{
	const char *value = info->text ? info->text : info->usual;

	printf("%s\n  {\"name\": ", first ? "" : ",");
	cli_json_string(stdout, info->name);
	config_field("value", info->secret ? NULL : value);
	config_field("from", info->text ? "environment" : "default");
	config_field("default", info->usual);
	config_field("type", info->type);
	config_field("takes", info->takes);
	config_field("readers", info->readers);
	config_field("about", info->about);
	printf(", \"secret\": %s}", info->secret ? "true" : "false");
}

/* Every variable that is set, or the one: known, and set to what it takes. The first that is
   not is said. */
static bool config_check(const char *only)
{
	bool right = true;

	for (char *const *var = environ; var && *var && right; var++) {
		size_t len = strcspn(*var, "=");
		char name[128];
		struct hk_why why = { "" };

		if (strncmp(*var, "HOCKET_", strlen("HOCKET_")) != 0)
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)(len < sizeof(name) ? len : 127), *var);
		if (only && strcmp(only, name) != 0)
			continue;
		right = hk_env_check(name, (*var)[len] ? *var + len + 1 : NULL, &why) == HK_OK;
		if (!right)
			cli_wrong("config", "%s", why.text);
	}
	return right;
}

static int config_main(struct cli_args *args)
{
	struct hk_env_info info = { .size = sizeof(info) };
	struct hk_why why = { "" };
	struct widths widths = config_widths(args->what);
	bool first = true;

	if (args->what && hk_env_check(args->what, NULL, &why) != HK_OK)
		return cli_wrong("config", "%s", why.text);
	if (args->json)
		fputs("{\"variables\": [", stdout);
	else
		config_line(&widths, "NAME", "VALUE", "FROM", "DEFAULT", "WHAT IT IS");
	for (uint32_t i = 0; hk_env_get(i, &info); i++) {
		if (args->what && strcmp(args->what, info.name) != 0)
			continue;
		if (args->json)
			config_json(&info, first);
		else
			config_text(&widths, &info);
		first = false;
	}
	if (args->json)
		puts("\n]}");
	return config_check(args->what) ? CLI_DONE : CLI_WRONG;
}

const struct cli_command cli_config = {
	.name = "config",
	.about = "show environment variables and their values",
	.help = config_help,
	.takes = CLI_OPT_JSON,
	.run = config_main,
};
