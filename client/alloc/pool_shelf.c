/* SPDX-License-Identifier: Apache-2.0 */
#include "client/alloc/pool_shelf.h"

#include <stdlib.h>

/* How many freed runs of a size class are looked at that may be too short. */
#define TRIES 32
/* Shelves that are empty are kept up to so many: their streams go on. */
#define SHELVES_MAX 64

uint64_t
gpc_space_run_size(const struct gpc_space_run *run)
{
	return gpc_fit_units(&run->level->fit, run->place) * run->level->unit;
}

void
gpc_space_run_mark(const struct gpc_space_run *run, enum gpc_space_kind kind, uint32_t slack,
		   uint64_t value)
{
	*gpc_fit_word(&run->level->fit, run->place) =
		(uint32_t)kind << GPC_SPACE_KIND_SHIFT | slack;
	*gpc_fit_value(&run->level->fit, run->place) = value;
}

struct gpc_space_shelf *
gpc_shelf_find(struct gpc_space *space, uint64_t stream)
{
	struct gpc_space_shelf **link = &space->shelves, *shelf;

	while (*link && (*link)->stream != stream)
		link = &(*link)->next;
	shelf = *link;
	if (shelf) {
		/* To the front: it will be asked for again. */
		*link = shelf->next;
		shelf->next = space->shelves;
		space->shelves = shelf;
	}
	return shelf;
}

/* What streams that are gone left behind. */
static void
shelves_tidy(struct gpc_space *space)
{
	struct gpc_space_shelf **link = &space->shelves;
	unsigned int count = 0;

	while (*link) {
		struct gpc_space_shelf *shelf = *link;

		if (++count <= SHELVES_MAX || shelf->count > 0) {
			link = &shelf->next;
			continue;
		}
		*link = shelf->next;
		free(shelf);
	}
}

struct gpc_space_shelf *
gpc_shelf_get(struct gpc_space *space, const struct gpc_space_end *end)
{
	struct gpc_space_shelf *shelf = gpc_shelf_find(space, end->stream);

	if (shelf)
		return shelf;
	shelves_tidy(space);
	shelf = calloc(1, sizeof(*shelf));
	if (!shelf)
		return NULL;
	shelf->stream = end->stream;
	shelf->context = end->context;
	shelf->next = space->shelves;
	space->shelves = shelf;
	return shelf;
}

static struct gpc_space_freed **
shelf_list(const struct gpc_space *space, struct gpc_space_freed *freed)
{
	uint32_t units = gpc_fit_units(&freed->run.level->fit, freed->run.place);

	return &freed->shelf->lists[freed->run.level == &space->large][gpc_fit_class(units)];
}

void
gpc_shelf_put(struct gpc_space *space, struct gpc_space_freed *freed)
{
	struct gpc_space_freed **list = shelf_list(space, freed);

	gpc_space_run_mark(&freed->run, GPC_SPACE_FREED, 0, (uintptr_t)freed);
	freed->prev = NULL;
	freed->next = *list;
	if (freed->next)
		freed->next->prev = freed;
	*list = freed;
	freed->shelf->count++;
}

void
gpc_shelf_take(struct gpc_space *space, struct gpc_space_freed *freed)
{
	if (freed->prev)
		freed->prev->next = freed->next;
	else
		*shelf_list(space, freed) = freed->next;
	if (freed->next)
		freed->next->prev = freed->prev;
	freed->shelf->count--;
}

void
gpc_shelf_age_append(struct gpc_space *space, struct gpc_space_freed *freed)
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
gpc_shelf_age_remove(struct gpc_space *space, struct gpc_space_freed *freed)
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
gpc_shelf_search(struct gpc_space_shelf *shelf, const struct gpc_space_level *level, bool large,
		 uint32_t units)
{
	struct gpc_space_freed *freed = shelf->lists[large][gpc_fit_class(units)];

	for (int i = 0; i < TRIES && freed; i++) {
		if (gpc_fit_units(&level->fit, freed->run.place) >= units)
			return freed;
		freed = freed->next;
	}
	for (unsigned int i = gpc_fit_class_for(units); i < GPC_FIT_CLASSES; i++) {
		if (shelf->lists[large][i])
			return shelf->lists[large][i];
	}
	return NULL;
}
