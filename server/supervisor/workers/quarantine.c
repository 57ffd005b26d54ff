/* SPDX-License-Identifier: Apache-2.0 */
#include "server/supervisor/workers/quarantine.h"

#include "protocol/printable.h"
#include "server/common/base/log.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* Size of a name in the log. */
#define NAME_SIZE 52

void
gpd_program_set(struct gpd_program *program, const char *tenant, const void *key, size_t size,
		const char *host, const char *user, const char *name)
{
	*program = (struct gpd_program){ .tenant = "" };
	(void)snprintf(program->tenant, sizeof(program->tenant), "%s", tenant);
	if (size == sizeof(program->key))
		memcpy(program->key, key, size);
	(void)gp_printable_text(program->host, sizeof(program->host), host);
	(void)gp_printable_text(program->user, sizeof(program->user), user);
	(void)gp_printable_text(program->name, sizeof(program->name), name);
}

bool
gpd_program_equals(const struct gpd_program *a, const struct gpd_program *b)
{
	static const uint8_t none[sizeof(a->key)];

	if (strcmp(a->tenant, b->tenant) != 0 || memcmp(a->key, b->key, sizeof(a->key)) != 0)
		return false;
	return memcmp(a->key, none, sizeof(none)) != 0 ||
	       (strcmp(a->host, b->host) == 0 && strcmp(a->user, b->user) == 0 &&
		strcmp(a->name, b->name) == 0);
}

static bool
entry_covers(const struct gpd_quarantine_entry *entry, const struct gpd_program *program)
{
	if (entry->state == GPD_QUARANTINE_FREE)
		return false;
	return entry->whole_tenant ? strcmp(entry->program.tenant, program->tenant) == 0
				   : gpd_program_equals(&entry->program, program);
}

static struct gpd_quarantine_entry *
entry_find(struct gpd_quarantine *quarantine, const struct gpd_program *program)
{
	for (size_t i = 0; i < GPD_QUARANTINE_MAX; i++) {
		if (entry_covers(&quarantine->entries[i], program))
			return &quarantine->entries[i];
	}
	return NULL;
}

static void
entry_format(const struct gpd_quarantine_entry *entry, char *text, size_t size)
{
	char name[NAME_SIZE], user[NAME_SIZE], host[NAME_SIZE];

	gp_printable_name(name, sizeof(name), entry->program.name);
	gp_printable_name(user, sizeof(user), entry->program.user);
	gp_printable_name(host, sizeof(host), entry->program.host);
	if (entry->whole_tenant)
		(void)snprintf(text, size, "tenant %s", entry->program.tenant);
	else
		(void)snprintf(text, size, "tenant %s: program %s of %s on %s",
			       entry->program.tenant, name, user, host);
}

const char *
gpd_quarantine_explain(const struct gpd_quarantine_entry *entry, char text[GPD_QUARANTINE_TEXT_MAX])
{
	if (!entry->result)
		(void)snprintf(text, GPD_QUARANTINE_TEXT_MAX,
			       "its GPU work did not end after its client had left");
	else if (entry->certain)
		(void)snprintf(text, GPD_QUARANTINE_TEXT_MAX, "its kernel faulted with error %d",
			       entry->result);
	else
		(void)snprintf(text, GPD_QUARANTINE_TEXT_MAX,
			       "a kernel faulted with error %d while its work was running",
			       entry->result);
	return text;
}

const char *
gpd_quarantine_format_end(const struct gpd_quarantine_entry *entry, char text[32])
{
	const time_t until = (time_t)entry->until_s;
	struct tm tm;

	text[0] = '\0';
	if (gmtime_r(&until, &tm))
		(void)strftime(text, 32, "%H:%M:%S UTC", &tm);
	return text;
}

/* Changes the state, and logs the change. until_ms is set by the caller. */
static void
entry_set_state(struct gpd_quarantine *quarantine, struct gpd_quarantine_entry *entry,
		enum gpd_quarantine_state state)
{
	bool changes = entry->state != state;
	char whose[300], why[GPD_QUARANTINE_TEXT_MAX], until[32];

	entry->state = state;
	if (!changes || state == GPD_QUARANTINE_FREE)
		return;
	entry_format(entry, whose, sizeof(whose));
	gpd_quarantine_explain(entry, why);
	gpd_quarantine_format_end(entry, until);
	if (state == GPD_QUARANTINE_SUSPECT) {
		gpd_info("%s: suspect until %s: %s", whose, until, why);
		return;
	}
	quarantine->total++;
	gpd_warning("%s: in quarantine until %s: %s; its new sessions get workers of their own "
		    "(gpupoolctl quarantine end %llu ends this)",
		    whose, until, why, (unsigned long long)entry->id);
}

void
gpd_quarantine_expire(struct gpd_quarantine *quarantine, uint32_t seconds, int64_t now_ms)
{
	for (size_t i = 0; i < GPD_QUARANTINE_MAX; i++) {
		struct gpd_quarantine_entry *entry = &quarantine->entries[i];

		if (!seconds || entry->until_ms <= now_ms)
			entry_set_state(quarantine, entry, GPD_QUARANTINE_FREE);
	}
}

static size_t
count_of_tenant(const struct gpd_quarantine *quarantine, const char *tenant)
{
	size_t count = 0;

	for (size_t i = 0; i < GPD_QUARANTINE_MAX; i++) {
		const struct gpd_quarantine_entry *entry = &quarantine->entries[i];

		count += entry->state != GPD_QUARANTINE_FREE &&
			 strcmp(entry->program.tenant, tenant) == 0;
	}
	return count;
}

/* Frees all entries of the tenant. */
static void
tenant_clear(struct gpd_quarantine *quarantine, const char *tenant)
{
	for (size_t i = 0; i < GPD_QUARANTINE_MAX; i++) {
		struct gpd_quarantine_entry *entry = &quarantine->entries[i];

		if (strcmp(entry->program.tenant, tenant) == 0)
			entry_set_state(quarantine, entry, GPD_QUARANTINE_FREE);
	}
}

/* Returns the entry to replace by a new one: a free one, else that which ends first; of this tenant
 * only, unless it is NULL. suspects: only suspects. NULL: there is none. */
static struct gpd_quarantine_entry *
find_replaceable(struct gpd_quarantine *quarantine, const char *tenant, bool suspects)
{
	struct gpd_quarantine_entry *first = NULL;

	for (size_t i = 0; i < GPD_QUARANTINE_MAX; i++) {
		struct gpd_quarantine_entry *entry = &quarantine->entries[i];

		if (!tenant && entry->state == GPD_QUARANTINE_FREE)
			return entry;
		if (entry->state == GPD_QUARANTINE_FREE ||
		    (suspects && entry->state != GPD_QUARANTINE_SUSPECT) ||
		    (tenant && strcmp(entry->program.tenant, tenant) != 0))
			continue;
		if (!first || entry->until_ms < first->until_ms)
			first = entry;
	}
	return first;
}

/* Returns a FREE entry for the program, or for its tenant; NULL: the tenant has no more suspects.
 */
static struct gpd_quarantine_entry *
entry_create(struct gpd_quarantine *quarantine, const struct gpd_program *program, bool certain)
{
	bool full = count_of_tenant(quarantine, program->tenant) >= GPD_QUARANTINE_TENANT_MAX;
	struct gpd_quarantine_entry *entry;

	if (full && certain)
		tenant_clear(quarantine, program->tenant);
	if (full && !certain)
		entry = find_replaceable(quarantine, program->tenant, true);
	else
		entry = find_replaceable(quarantine, NULL, false);
	if (entry)
		*entry = (struct gpd_quarantine_entry){ .id = ++quarantine->last_id,
							.whole_tenant = full && certain };
	return entry;
}

static void
candidate_report(struct gpd_quarantine *quarantine, const struct gpd_program *program, bool certain,
		 int result, uint32_t seconds, int64_t now_ms)
{
	struct gpd_quarantine_entry *entry = entry_find(quarantine, program);
	bool again = entry != NULL;

	if (!entry)
		entry = entry_create(quarantine, program, certain);
	if (!entry)
		return;
	entry->program = *program;
	entry->certain = certain;
	entry->result = result;
	entry->until_ms = now_ms + 1000 * (int64_t)seconds;
	entry->until_s = (int64_t)time(NULL) + seconds;
	entry_set_state(quarantine, entry,
			certain || again ? GPD_QUARANTINE_ACTIVE : GPD_QUARANTINE_SUSPECT);
}

static bool
is_repeated(const struct gpd_program *programs, size_t index)
{
	for (size_t i = 0; i < index; i++) {
		if (gpd_program_equals(&programs[i], &programs[index]))
			return true;
	}
	return false;
}

void
gpd_quarantine_report(struct gpd_quarantine *quarantine, const struct gpd_program *candidates,
		      size_t count, int result, uint32_t seconds, int64_t now_ms)
{
	size_t programs = 0;

	gpd_quarantine_expire(quarantine, seconds, now_ms);
	for (size_t i = 0; i < count; i++)
		programs += !is_repeated(candidates, i);
	for (size_t i = 0; seconds && i < count; i++) {
		if (!is_repeated(candidates, i))
			candidate_report(quarantine, &candidates[i], result && programs == 1,
					 result, seconds, now_ms);
	}
}

const struct gpd_quarantine_entry *
gpd_quarantine_find(struct gpd_quarantine *quarantine, const struct gpd_program *program,
		    uint32_t seconds, int64_t now_ms)
{
	const struct gpd_quarantine_entry *entry;

	gpd_quarantine_expire(quarantine, seconds, now_ms);
	entry = entry_find(quarantine, program);
	return entry && entry->state == GPD_QUARANTINE_ACTIVE ? entry : NULL;
}

bool
gpd_quarantine_end(struct gpd_quarantine *quarantine, uint64_t id)
{
	for (size_t i = 0; i < GPD_QUARANTINE_MAX; i++) {
		struct gpd_quarantine_entry *entry = &quarantine->entries[i];
		char whose[300];

		if (entry->state != GPD_QUARANTINE_ACTIVE || entry->id != id)
			continue;
		entry_format(entry, whose, sizeof(whose));
		gpd_info("%s: quarantine ended by the administrator", whose);
		entry_set_state(quarantine, entry, GPD_QUARANTINE_FREE);
		return true;
	}
	return false;
}
