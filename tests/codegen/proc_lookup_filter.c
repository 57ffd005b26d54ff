/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers queries from standard input by gpc_proc_lookup over all of symbols.h.
 * A line "BASE VERSION FLAGS DRIVER_VERSION" ("-" for the empty name) yields a line
 * "RESULT STATUS NAME", with "-" where nothing was found.
 */
#include "client/entry/proc_address.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GP_SYMBOL(name, base, since) #name,
#define GP_SYMBOL_PTDS(name, base, since) #name,
#define GP_SYMBOL_PTSZ(name, base, since) #name,
static const char *const names[] = {
#include "codegen/api/symbols.h"
};
#undef GP_SYMBOL
#undef GP_SYMBOL_PTDS
#undef GP_SYMBOL_PTSZ

#define GP_SYMBOL(name, base, since) { #base, 0, since, 0 },
#define GP_SYMBOL_PTDS(name, base, since) { #base, 1, since, 0 },
#define GP_SYMBOL_PTSZ(name, base, since) { #base, 1, since, 0 },
const struct gpc_proc_entry gpc_proc_table[] = {
#include "codegen/api/symbols.h"
};

#define COUNT (sizeof(gpc_proc_table) / sizeof(gpc_proc_table[0]))

const size_t gpc_proc_count = COUNT;
const void *const gpc_entry_address[COUNT];

/* The description is in the order of chapters. */
static struct gpc_proc_entry sorted[COUNT];

static int
compare(const void *left, const void *right)
{
	const struct gpc_proc_entry *a = left, *b = right;
	int order = strcmp(a->base, b->base);

	if (order == 0)
		order = a->per_thread - b->per_thread;
	return order ? order : a->version - b->version;
}

static void
answer(const char *base, int version, unsigned long long flags, int driver_version)
{
	const struct gpc_proc_entry *entry = NULL;
	CUdriverProcAddressQueryResult status = 0;
	CUresult result;

	result = gpc_proc_lookup(sorted, COUNT, base, version, flags, driver_version, &entry,
				 &status);
	(void)printf("%d %d %s\n", (int)result, (int)status, entry ? names[entry->symbol] : "-");
}

int
main(void)
{
	unsigned long long flags;
	int version, driver_version;
	char base[128];

	memcpy(sorted, gpc_proc_table, sizeof(sorted));
	for (size_t i = 0; i < COUNT; i++)
		sorted[i].symbol = (int)i;
	qsort(sorted, COUNT, sizeof(sorted[0]), compare);
	while (scanf("%127s %d %llu %d", base, &version, &flags, &driver_version) == 4)
		answer(strcmp(base, "-") ? base : "", version, flags, driver_version);
	return ferror(stdin) || ferror(stdout);
}
