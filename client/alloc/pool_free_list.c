/* SPDX-License-Identifier: Apache-2.0 */
#include "client/alloc/pool_free_list.h"

#include <stdlib.h>

/* Maximum number of freed runs of a size class examined that may be too short. */
#define SCAN_MAX 32
/* Maximum number of free lists before empty ones are freed. Their streams are likely to need them
 * again. */
#define FREE_LISTS_MAX 64

uint64_t
gpc_space_run_size(const struct gpc_space_run *run)
{
	return gpc_tlsf_get_units(&run->level->tlsf, run->place) * run->level->unit;
}

void
gpc_space_run_set_kind(const struct gpc_space_run *run, enum gpc_space_kind kind, uint32_t slack,
		       uint64_t value)
{
	*gpc_tlsf_get_user32(&run->level->tlsf, run->place) =
		(uint32_t)kind << GPC_SPACE_KIND_SHIFT | slack;
	*gpc_tlsf_get_user64(&run->level->tlsf, run->place) = value;
}

struct gpc_space_free_list *
gpc_free_list_find(struct gpc_space *space, uint64_t stream)
{
	struct gpc_space_free_list **link = &space->free_lists, *free_list;

	while (*link && (*link)->stream != stream)
		link = &(*link)->next;
	free_list = *link;
	if (free_list) {
		/* Move to front: the stream is likely to need it again soon. */
		*link = free_list->next;
		free_list->next = space->free_lists;
		space->free_lists = free_list;
	}
	return free_list;
}

/* Frees empty free lists, which may belong to destroyed streams. */
static void
free_lists_trim(struct gpc_space *space)
{
	struct gpc_space_free_list **link = &space->free_lists;
	unsigned int count = 0;

	while (*link) {
		struct gpc_space_free_list *free_list = *link;

		if (++count <= FREE_LISTS_MAX || free_list->count > 0) {
			link = &free_list->next;
			continue;
		}
		*link = free_list->next;
		free(free_list);
	}
}

struct gpc_space_free_list *
gpc_free_list_get(struct gpc_space *space, const struct gpc_space_free_order *end)
{
	struct gpc_space_free_list *free_list = gpc_free_list_find(space, end->stream);

	if (free_list)
		return free_list;
	free_lists_trim(space);
	free_list = calloc(1, sizeof(*free_list));
	if (!free_list)
		return NULL;
	free_list->stream = end->stream;
	free_list->context = end->context;
	free_list->next = space->free_lists;
	space->free_lists = free_list;
	return free_list;
}

static struct gpc_space_freed **
free_list_head(const struct gpc_space *space, struct gpc_space_freed *freed)
{
	uint32_t units = gpc_tlsf_get_units(&freed->run.level->tlsf, freed->run.place);

	return &freed->free_list
			->lists[freed->run.level == &space->large][gpc_tlsf_size_class(units)];
}

void
gpc_free_list_add(struct gpc_space *space, struct gpc_space_freed *freed)
{
	struct gpc_space_freed **list = free_list_head(space, freed);

	gpc_space_run_set_kind(&freed->run, GPC_SPACE_FREED, 0, (uintptr_t)freed);
	freed->prev = NULL;
	freed->next = *list;
	if (freed->next)
		freed->next->prev = freed;
	*list = freed;
	freed->free_list->count++;
}

void
gpc_free_list_remove(struct gpc_space *space, struct gpc_space_freed *freed)
{
	if (freed->prev)
		freed->prev->next = freed->next;
	else
		*free_list_head(space, freed) = freed->next;
	if (freed->next)
		freed->next->prev = freed->prev;
	freed->free_list->count--;
}

void
gpc_free_list_age_append(struct gpc_space *space, struct gpc_space_freed *freed)
{
	freed->older = space->newest;
	freed->newer = NULL;
	if (freed->older)
		freed->older->newer = freed;
	else
		space->oldest = freed;
	space->newest = freed;
}

void
gpc_free_list_age_remove(struct gpc_space *space, struct gpc_space_freed *freed)
{
	if (freed->older)
		freed->older->newer = freed->newer;
	else
		space->oldest = freed->newer;
	if (freed->newer)
		freed->newer->older = freed->older;
	else
		space->newest = freed->older;
}

struct gpc_space_freed *
gpc_free_list_search(struct gpc_space_free_list *free_list, const struct gpc_space_level *level,
		     bool large, uint32_t units)
{
	struct gpc_space_freed *freed = free_list->lists[large][gpc_tlsf_size_class(units)];

	for (int i = 0; i < SCAN_MAX && freed; i++) {
		if (gpc_tlsf_get_units(&level->tlsf, freed->run.place) >= units)
			return freed;
		freed = freed->next;
	}
	for (unsigned int i = gpc_tlsf_size_class_fitting(units); i < GPC_TLSF_SIZE_CLASSES; i++) {
		if (free_list->lists[large][i])
			return free_list->lists[large][i];
	}
	return NULL;
}
