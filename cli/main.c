/* SPDX-License-Identifier: Apache-2.0 */
/* gpupool: runs programs on the GPUs of a pool. */
#include "cli/command.h"
#include "protocol/standard_fds.h"

#include <stdio.h>
#include <string.h>

static const struct command {
	const char *name;
	cli_command *run;
	const char *usage, *what, *more;
} commands[] = {
	{ "run", cli_run,
	  "[-p POOL] [--gpus N] [--memory SIZE] [--sm PERCENT] [--wait TIME]\n"
	  "            [--] PROGRAM [ARGUMENT...]",
	  "run a program on a pool's GPUs",
	  "  -p, --pool POOL     a pool of pools.conf, or an address: tls://HOST;\n"
	  "                      without it GPUPOOL_POOL, REMOTE_GPU, or the first pool\n"
	  "      --gpus N        the program sees the first N devices\n"
	  "      --memory SIZE   limit of memory on each device: 10G, 512M\n"
	  "      --sm PERCENT    limit of each device's multiprocessors: 50%\n"
	  "      --wait TIME     maximum time to wait for a session slot, and until the\n"
	  "                      memory of --memory is free: 90s, 10m, 2h\n"
	  "\n"
	  "The program takes gpupool's place, so signals and its status are its own.\n"
	  "125: gpupool itself failed; 126: the program cannot be run; 127: there is none.\n" },
	{ "devices", cli_devices, "[-p POOL] [-L | --json]",
	  "GPUs, how busy they are, your quota, your sessions",
	  "  -p, --pool POOL     as for run\n"
	  "  -L, --list          one line for each GPU, with its UUID\n"
	  "      --json          for programs: sizes in bytes, times in seconds\n" },
	{ "check", cli_check, "[-p POOL] [PROGRAM]", "check why a program finds no GPU, or is slow",
	  "  -p, --pool POOL     as for run\n"
	  "\n"
	  "One line for each check, from the configuration to the bandwidth; with a\n"
	  "program, also which libcuda.so.1 it will find, and why.\n"
	  "Exit status 0: no problems; 1: problems were found.\n" },
	{ "env", cli_env, "[-p POOL] [--gpus N] [--memory SIZE] [--sm PERCENT] [--wait TIME]",
	  "print what run would set, for a shell: eval \"$(gpupool env)\"",
	  "The options are those of run.\n" },
	{ "login", cli_login, "[--no-check] POOL [ADDRESS] < TOKEN_FILE",
	  "store a token for a pool, and the pool's address",
	  "The token's file is read from standard input, and stored readable by\n"
	  "you only. ADDRESS (tls://HOST) adds the pool to your pools.conf.\n"
	  "Programs find the token by the pool's name and by its address.\n"
	  "\n"
	  "      --no-check      store it without a connection to the pool\n" },
	{ "logout", cli_logout, "POOL", "remove a pool's token, and its address",
	  "A section of pools.conf that has settings that login did not write is kept.\n" },
	{ "pools", cli_list_pools, "", "list the configured pools",
	  "Those of your pools.conf, then those of the machine's. The first one is used\n"
	  "where nothing names a pool.\n" },
	{ "help", cli_help, "[COMMAND]", "list commands, or describe one", "" },
};

static const struct command *
command_find(const char *name)
{
	for (size_t i = 0; i < COUNT(commands); i++) {
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	}
	return NULL;
}

static void
commands_print(void)
{
	printf("gpupool runs CUDA programs on the GPUs of a pool.\n\n");
	for (size_t i = 0; i < COUNT(commands); i++)
		printf("  gpupool %-8s %s\n", commands[i].name, commands[i].what);
	printf("\n\"gpupool help COMMAND\" lists its options; see gpupool(1).\n");
}

int
cli_help(int count, char **words)
{
	const char *names[COUNT(commands)];
	const struct command *command;

	if (count < 2) {
		commands_print();
		return 0;
	}
	command = command_find(words[1]);
	for (size_t i = 0; i < COUNT(commands); i++)
		names[i] = commands[i].name;
	if (!command)
		return cli_fail("unknown command \"%s\"%s", words[1],
				cli_suggestion(words[1], names, COUNT(names)));
	printf("gpupool %s %s\n\n%s%s", command->name, command->usage, command->more,
	       *command->more ? "" : "\n");
	return 0;
}

/* Returns whether --help or -h is among the command's own options, not among those of the program
 * to run. */
static bool
wants_help(int count, char **words)
{
	static const char *const with_value[] = { "-p",       "--pool", "--gpus",
						  "--memory", "--sm",   "--wait" };

	for (int i = 1; i < count && words[i][0] == '-'; i++) {
		if (strcmp(words[i], "--help") == 0 || strcmp(words[i], "-h") == 0)
			return true;
		if (strcmp(words[i], "--") == 0)
			return false;
		for (size_t k = 0; k < COUNT(with_value); k++) {
			if (strcmp(words[i], with_value[k]) == 0) {
				i++;
				break;
			}
		}
	}
	return false;
}

static int
command_execute(int count, char **words)
{
	const char *names[COUNT(commands)];
	const struct command *command;
	char *about[] = { "help", words[0], NULL };

	command = command_find(words[0]);
	for (size_t i = 0; i < COUNT(commands); i++)
		names[i] = commands[i].name;
	if (!command && words[0][0] == '-')
		return cli_fail("unknown option \"%s\": \"gpupool help\" lists the commands",
				words[0]);
	if (!command)
		return cli_fail("unknown command \"%s\"%s \"gpupool help\" lists the commands, and "
				"\"gpupool run %s\" runs a program",
				words[0],
				*cli_suggestion(words[0], names, COUNT(names))
					? cli_suggestion(words[0], names, COUNT(names))
					: ";",
				words[0]);
	return wants_help(count, words) ? cli_help(2, about) : command->run(count, words);
}

int
main(int argc, char **argv)
{
	int r;

	if (gp_stdio_ensure_open())
		return CLI_FAILED;
	if (argc < 2) {
		(void)cli_fail("no command: \"gpupool help\" lists the commands");
		return CLI_FAILED;
	}
	if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
		printf("gpupool " GPUPOOL_VERSION "\n");
		return 0;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
		argv[1] = "help";
	r = command_execute(argc - 1, argv + 1);
	if (fflush(stdout) != 0 || ferror(stdout))
		return cli_fail("cannot write to standard output");
	return r;
}
