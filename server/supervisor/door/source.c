/* SPDX-License-Identifier: Apache-2.0 */
#include "server/supervisor/door/source.h"

#include "server/common/ledger/log_budget.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* When addresses are forgotten of which nothing is known. */
#define CHECK_MS 30000

static struct gpd_source *sources;
/* When there are too many. */
static struct gpd_source others = { .name = "other addresses", .check_ms = INT64_MAX };

struct gpd_source *
gpd_source_get(const char *peer, const uid_t *owner, int64_t now_ms)
{
	bool own = owner && (*owner == 0 || *owner == geteuid());
	char name[GPD_SOURCE_NAME_MAX];
	struct gpd_source *source;

	gpd_source_name(peer, owner, name);
	HASH_FIND_STR(sources, name, source);
	if (!source && (own || HASH_COUNT(sources) < GPD_SOURCES_MAX)) {
		source = calloc(1, sizeof(*source));
		if (source) {
			memcpy(source->name, name, sizeof(name));
			source->own = own;
			source->check_ms = INT64_MAX;
			HASH_ADD_STR(sources, name, source);
		}
	}
	if (!source)
		source = &others;
	source->users++;
	return source;
}

void
gpd_source_put(struct gpd_source *source, int64_t now_ms)
{
	source->users--;
	if (source->check_ms == INT64_MAX)
		source->check_ms = now_ms + CHECK_MS;
}

int64_t
gpd_source_failed(struct gpd_source *source, int64_t now_ms)
{
	return gpd_bucket_use(&source->failures, GPD_SOURCE_FAILURES, GPD_SOURCE_FAILURE_MS, now_ms)
		       ? 0
		       : GPD_SOURCE_DELAY_MS;
}

void
gpd_source_log(const struct gpd_source *source, enum gpd_log_level level, const char *format, ...)
{
	char text[900];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	gpd_log_budget_log_address(source->name, level, "%s", text);
}

int64_t
gpd_source_deadline(void)
{
	int64_t deadline = others.check_ms;

	for (const struct gpd_source *c = sources; c; c = c->hh.next) {
		if (c->check_ms < deadline)
			deadline = c->check_ms;
	}
	return deadline;
}

/* Whether it may be forgotten. */
static bool
check(struct gpd_source *source, int64_t now_ms)
{
	if (source->check_ms > now_ms)
		return false;
	gpd_bucket_give_back(&source->failures, GPD_SOURCE_FAILURE_MS, now_ms);
	source->check_ms = source->users ? INT64_MAX : now_ms + CHECK_MS;
	if (source == &others && !source->failures.used)
		source->check_ms = INT64_MAX;
	return !source->users && !source->failures.used;
}

void
gpd_source_check(int64_t now_ms)
{
	struct gpd_source *source, *next;

	(void)check(&others, now_ms);
	HASH_ITER(hh, sources, source, next)
	{
		if (!check(source, now_ms))
			continue;
		HASH_DEL(sources, source);
		free(source);
	}
}

void
gpd_source_forget_all(void)
{
	struct gpd_source *source, *next;

	HASH_ITER(hh, sources, source, next)
	{
		HASH_DEL(sources, source);
		free(source);
	}
	others = (struct gpd_source){ .name = "other addresses", .check_ms = INT64_MAX };
}
