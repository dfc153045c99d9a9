/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - the command: finds the sub-command and looks after the output. */
#include "cli.h"

#include <errno.h>
#include <string.h>

static const struct cli_command *const commands[] = {
	&cli_plan, &cli_check,	 &cli_list,  &cli_run,	  &cli_bench, &cli_fabric, &cli_probe,
	&cli_sim,  &cli_explain, &cli_trace, &cli_doctor, &cli_top,   &cli_config
};
#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static void main_help(void)
{
	printf("Usage: hocket COMMAND [OPTION...]\n"
	       "Every collective is a plan; one plan is proved, predicted and performed.\n\n");
	for (size_t i = 0; i < COMMANDS; i++)
		printf("  %-7s %s\n", commands[i]->name, commands[i]->about);
	printf("\n  --help     this text; 'hocket COMMAND --help' for one command\n"
	       "  --version  the version\n"
	       "\nExample: hocket plan allreduce --algo ring -n 4 --picture\n");
}

static int main_run_command(const struct cli_command *command, int argc, char **argv)
{
	struct cli_args args;
	int status = CLI_WRONG;

	if (command->main)
		return command->main(argc, argv);
	if (cli_args_parse(&args, command->name, command->takes, argc, argv)) {
		if (args.help) {
			fputs(command->help, stdout);
			status = CLI_DONE;
		} else {
			status = command->run(&args);
		}
	}
	cli_args_fini(&args);
	return status;
}

static int main_run(int argc, char **argv)
{
	if (argc < 2)
		return cli_wrong(NULL, "no command given; see 'hocket --help'");
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
		main_help();
		return CLI_DONE;
	}
	if (strcmp(argv[1], "--version") == 0) {
		printf("hocket %s\n", hk_version());
		return CLI_DONE;
	}
	for (size_t i = 0; i < COMMANDS; i++)
		if (strcmp(argv[1], commands[i]->name) == 0)
			return main_run_command(commands[i], argc - 1, argv + 1);
	return cli_wrong(NULL, "unknown command '%s'; see 'hocket --help'", argv[1]);
}

int main(int argc, char **argv)
{
	int status = main_run(argc, argv);

	/* Output that was lost is an error, whatever else went well. */
	if (fflush(stdout) != 0 || ferror(stdout)) {
		fprintf(stderr, "hocket: cannot write the output: %s\n", strerror(errno));
		return CLI_WRONG;
	}
	return status;
}
