/* SPDX-License-Identifier: Apache-2.0 */
/* help, and suggestions for unknown commands. */
#include "base/edit_distance.h"
#include "ctl/command.h"

#include <string.h>

#define BRIEF_COLUMN 32

/* In the order of the list; `more` is printed for help of the single command. */
static const struct entry {
	const char *words, *arguments, *brief, *more;
} entries[] = {
	{ "status", "", "the daemon in a few lines",
	  "Its addresses, files and user, and when certificates expire." },
	{ "device list", "", "GPUs and their use",
	  "A GPU is sick if it has failed: no session uses it until it is enabled." },
	{ "device enable", "GPU", "use a sick GPU again, after its repair",
	  "GPU is the number in that column of device list. New sessions see it; if it\n"
	  "still fails, it becomes sick again." },
	{ "session list", "", "sessions, their devices and memory",
	  "LIMIT is the smaller of the session's own limit and its tenant's." },
	{ "session show", "ID", "details of a session", NULL },
	{ "session set", "ID [gpu=N] NAME=VALUE...", "memory, sm, priority of a running session",
	  "memory=1.5GiB, 25% or all; sm=66, 50% or all; priority=low, normal or high." },
	{ "session terminate", "ID | --tenant NAME", "end a session, or all of a tenant",
	  "Returns when the work on the GPU has ended; the programs get the reason." },
	{ "tenant list", "", "tenants, their limits and use", NULL },
	{ "tenant set", "TENANT [gpu=N] NAME=VALUE... [--save]", "change the limits of a tenant",
	  "The names are those of gpupoold.conf(5):\n"
	  "  memory=40G, 25% or all      device memory\n"
	  "  sm=66, 50% or all           multiprocessors\n"
	  "  weight=100                  1 to 1000, of GPU time\n"
	  "  limit=80%                   of GPU time, at most\n"
	  "  time-share=30%              of GPU time, where the policy is fixed\n"
	  "  priority=low                or normal, or high\n"
	  "  bandwidth=1G or unlimited   bytes per second of the network\n"
	  "  sessions=8 or unlimited     at a time\n"
	  "The change takes effect at once, and lasts until the daemon exits or reloads.\n"
	  "--save writes it into the configuration, too; other lines and comments stay." },
	{ "worker list", "", "worker processes and their sessions",
	  "A serving worker gets new sessions, a retiring one exits after its last." },
	{ "worker replace", "PID [--terminate]", "replace the worker that gets new sessions",
	  "Another worker starts. The sessions of the replaced one continue, and it exits\n"
	  "after the last of them. --terminate ends them, and returns when their work on\n"
	  "the GPU has ended. Workers in reserve are replaced as well." },
	{ "quarantine list", "", "programs that get workers of their own",
	  "A program whose kernel has ended sessions of others is in quarantine, for the\n"
	  "time of the key quarantine in gpupoold.conf(5). One without a name is a whole\n"
	  "tenant." },
	{ "quarantine end", "ID", "let a program share workers again", NULL },
	{ "drain", "[--wait | --undo]", "admit no new sessions; wait for the last one",
	  "--wait prints the sessions that are left, --undo admits sessions again." },
	{ "reload", "", "read the configuration file again", NULL },
	{ "top", "[-n COUNT] [-d SECONDS]", "live view; q ends it", NULL },
	{ "doctor", "[--directory DIR]", "check the pool's files and daemon",
	  "Exit status 1: problems, each printed with a remedy; 0: none." },
	{ "usage", "[--since 30d|DATE] [--by tenant|session] [--file FILE]",
	  "use of GPUs, from the usage records",
	  "The records outlive the daemon: usage = FILE in gpupoold.conf(5) names them.\n"
	  "Those of a running session are a few minutes old." },
	{ "cert init", "HOST... [--expires 2y] [--force]",
	  "create an authority and a daemon's certificate", NULL },
	{ "cert client", "NAME [--expires 2y] [-o FOLDER]", "create a certificate for a client",
	  NULL },
	{ "cert show", "[FILE]", "owner and expiry of a certificate", NULL },
	{ "cert list", "", "list the certificates in the directory", NULL },
	{ "cert revoke", "NAME|FILE|SERIAL", "revoke a certificate and end its sessions", NULL },
	{ "cert revoked", "", "list revoked certificates", NULL },
	{ "cert crl", "[--expires 30d]", "sign the CRL again", NULL },
	{ "token create", "TENANT [--expires 30d] [--comment TEXT] [-o FILE]",
	  "create a token for clients of a tenant", NULL },
	{ "token list", "", "tokens, their tenants and expiry", NULL },
	{ "token revoke", "ID", "revoke a token and end its sessions", NULL },
	{ "help", "[COMMAND]", "list commands, or describe one", NULL },
};
/* Returns whether the entry begins with these words. */
static bool
entry_matches(const struct entry *entry, int count, char **words)
{
	const char *at = entry->words;

	for (int i = 0; i < count; i++) {
		size_t length = strlen(words[i]);

		if (strncmp(at, words[i], length) != 0 || (at[length] && at[length] != ' '))
			return false;
		at += length + (at[length] == ' ');
	}
	return true;
}

static void
print_brief(const struct entry *entry)
{
	int used = printf("  %s %s", entry->words, entry->arguments);

	/* On the next line if the command is too long. */
	if (used >= BRIEF_COLUMN)
		printf("\n");
	printf("%*s%s\n", used >= BRIEF_COLUMN ? BRIEF_COLUMN : BRIEF_COLUMN - used, "",
	       entry->brief);
}

static void
print_long(const struct entry *entry)
{
	printf("gpupoolctl %s%s%s\n%s.\n", entry->words, entry->arguments[0] ? " " : "",
	       entry->arguments, entry->brief);
	if (entry->more)
		printf("%s\n", entry->more);
}

/* For programs: lists the entries that begin with these words. */
static void
print_entries(enum ctl_format format, int count, char **words)
{
	static const struct ctl_column columns[] = { { "COMMAND", "command", CTL_TEXT },
						     { "ARGUMENTS", "arguments", CTL_TEXT },
						     { "BRIEF", "brief", CTL_TEXT },
						     { "MORE", "more", CTL_TEXT } };
	struct ctl_table table;

	ctl_table_init(&table, columns, COUNT(columns));
	for (size_t i = 0; i < COUNT(entries); i++) {
		if (!entry_matches(&entries[i], count, words))
			continue;
		ctl_table_text(&table, entries[i].words);
		ctl_table_text(&table, entries[i].arguments);
		ctl_table_text(&table, entries[i].brief);
		ctl_table_text(&table, entries[i].more);
	}
	ctl_table_print(&table, format, stdout);
	ctl_table_fini(&table);
}

int
ctl_help(const struct ctl *ctl, int count, char **words)
{
	const struct entry *only = NULL;
	int found = 0;

	for (size_t i = 0; i < COUNT(entries); i++) {
		if (!entry_matches(&entries[i], count, words))
			continue;
		only = &entries[i];
		found++;
	}
	if (ctl->format != CTL_FORMAT_TABLE && found) {
		print_entries((enum ctl_format)ctl->format, count, words);
		return 0;
	}
	if (found == 1) {
		print_long(only);
		return 0;
	}
	if (!found && !ctl_similar_command(words[0]))
		return ctl_fail("unknown command \"%s\": gpupoolctl help lists the commands",
				words[0]);
	if (!found)
		return ctl_unknown(count > 1 ? words[0] : NULL, count - (count > 1),
				   words + (count > 1), "help [COMMAND]");
	printf("gpupoolctl [-s SOCKET] [-f table|csv|json] COMMAND\n");
	for (size_t i = 0; i < COUNT(entries); i++)
		if (entry_matches(&entries[i], count, words))
			print_brief(&entries[i]);
	return 0;
}

const char *
ctl_similar_command(const char *word)
{
	static char buffer[32];
	struct gp_suggestion similar = { .word = word };
	static char firsts[COUNT(entries)][32];

	for (size_t i = 0; i < COUNT(entries); i++) {
		(void)snprintf(firsts[i], sizeof(firsts[i]), "%.*s",
			       (int)strcspn(entries[i].words, " "), entries[i].words);
		gp_suggestion_consider(&similar, firsts[i]);
	}
	if (!similar.best)
		return NULL;
	(void)snprintf(buffer, sizeof(buffer), "%s", similar.best);
	return buffer;
}

int
ctl_unknown(const char *group, int count, char **words, const char *usage)
{
	struct gp_suggestion similar = { .word = count ? words[0] : "" };
	size_t length = group ? strlen(group) : 0;

	if (!count)
		return ctl_usage_error(usage);
	for (size_t i = 0; i < COUNT(entries); i++) {
		const char *at = entries[i].words;

		if (!group)
			gp_suggestion_consider(&similar, at);
		else if (strncmp(at, group, length) == 0 && at[length] == ' ')
			gp_suggestion_consider(&similar, at + length + 1);
	}
	if (!group && !similar.best)
		similar.best = ctl_similar_command(words[0]);
	/* The command exists, so its arguments are wrong. */
	if (!similar.best || strcmp(similar.best, words[0]) == 0)
		return ctl_usage_error(usage);
	return ctl_fail("unknown command \"%s%s%s\"; did you mean %s%s%s? usage: gpupoolctl %s",
			group ? group : "", group ? " " : "", words[0], group ? group : "",
			group ? " " : "", similar.best, usage);
}
