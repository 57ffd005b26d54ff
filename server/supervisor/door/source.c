/* SPDX-License-Identifier: Apache-2.0 */
#include "server/supervisor/door/source.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct gpd_source *sources;
/* When there are too many. */
static struct gpd_source others = { .name = "other addresses" };

struct gpd_source *
gpd_source_get(const char *peer, const uid_t *owner)
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
			HASH_ADD_STR(sources, name, source);
		}
	}
	if (!source)
		source = &others;
	source->users++;
	return source;
}

void
gpd_source_put(struct gpd_source *source)
{
	source->users--;
}

int64_t
gpd_source_failed(struct gpd_source *source, int64_t now_ms)
{
	int64_t start = source->failed_until_ms > now_ms ? source->failed_until_ms : now_ms;

	if (start + GPD_SOURCE_FAILURE_MS > now_ms + GPD_SOURCE_FAILURES * GPD_SOURCE_FAILURE_MS)
		return GPD_SOURCE_DELAY_MS;
	source->failed_until_ms = start + GPD_SOURCE_FAILURE_MS;
	return 0;
}

void
gpd_source_count_wasted(struct gpd_source *source, int64_t now_ms)
{
	int64_t start = source->wasted_until_ms > now_ms ? source->wasted_until_ms : now_ms;

	if (!gpd_source_is_wasteful(source, now_ms))
		source->wasted_until_ms = start + GPD_SOURCE_WASTED_MS;
}

bool
gpd_source_is_wasteful(const struct gpd_source *source, int64_t now_ms)
{
	return !source->own && source != &others &&
	       source->wasted_until_ms >= now_ms + GPD_SOURCE_WASTED * GPD_SOURCE_WASTED_MS;
}

void
gpd_source_check(int64_t now_ms)
{
	struct gpd_source *source, *next;

	HASH_ITER(hh, sources, source, next)
	{
		if (source->users || source->failed_until_ms > now_ms ||
		    source->wasted_until_ms > now_ms)
			continue;
		HASH_DEL(sources, source);
		free(source);
	}
}
