/* SPDX-License-Identifier: Apache-2.0 */
#include "image/image_variables.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define UNREADABLE UINT64_MAX

/* Names are stored as hashes, because libraries have thousands of variables that are never looked
 * up; only images with few variables also store the names. A collision can only be constructed by
 * the author of the image. */
struct variable {
	uint64_t name;
	uint64_t size;
	bool managed;
};

struct gp_image_variables {
	struct variable *list; /* sorted by gp_image_variables_finish() */
	size_t count, capacity;
	bool all_known;
	char *names[GP_VARIABLE_NAMES_MAX];
	size_t name_count; /* GP_VARIABLE_NAMES_MAX + 1: too many, and none is stored */
};

/* FNV-1a */
static uint64_t
name_hash(const char *name, size_t size)
{
	uint64_t value = 0xcbf29ce484222325u;

	for (size_t i = 0; i < size; i++)
		value = (value ^ (uint8_t)name[i]) * 0x100000001b3u;
	return value;
}

static int
variable_compare(const void *a_pointer, const void *b_pointer)
{
	const struct variable *a = a_pointer, *b = b_pointer;

	if (a->name != b->name)
		return a->name < b->name ? -1 : 1;
	return (a->size > b->size) - (a->size < b->size);
}

struct gp_image_variables *
gp_image_variables_create(void)
{
	struct gp_image_variables *variables = calloc(1, sizeof(*variables));

	if (variables)
		variables->all_known = true;
	return variables;
}

static void
names_destroy(struct gp_image_variables *variables)
{
	for (size_t i = 0; i < GP_VARIABLE_NAMES_MAX; i++) {
		free(variables->names[i]);
		variables->names[i] = NULL;
	}
}

void
gp_image_variables_destroy(struct gp_image_variables *variables)
{
	if (!variables)
		return;
	names_destroy(variables);
	free(variables->list);
	free(variables);
}

/* Adds a name once, even if several parts of the image have it. Out of memory is treated as too
 * many names. */
static void
names_add(struct gp_image_variables *variables, const char *name, size_t size)
{
	const size_t count = variables->name_count;
	char *kept = NULL;

	if (count > GP_VARIABLE_NAMES_MAX || size == 0 || name[0] == '$' || name[0] == '.')
		return;
	for (size_t i = 0; i < count; i++) {
		if (strlen(variables->names[i]) == size &&
		    memcmp(variables->names[i], name, size) == 0)
			return;
	}
	if (count < GP_VARIABLE_NAMES_MAX)
		kept = strndup(name, size);
	if (kept) {
		variables->names[variables->name_count++] = kept;
		return;
	}
	names_destroy(variables);
	variables->name_count = GP_VARIABLE_NAMES_MAX + 1;
}

const char *
gp_image_variables_get_name(const struct gp_image_variables *variables, size_t number)
{
	return number < GP_VARIABLE_NAMES_MAX ? variables->names[number] : NULL;
}

uint64_t
gp_image_variables_get_total(const struct gp_image_variables *variables)
{
	uint64_t total = 0;

	if (!variables->all_known)
		return UINT64_MAX;
	for (size_t i = 0; i < variables->count; i++) {
		if (__builtin_add_overflow(total, variables->list[i].size, &total))
			return UINT64_MAX;
	}
	return total;
}

int
gp_image_variables_add(struct gp_image_variables *variables, const char *name, size_t name_size,
		       bool readable, bool managed, uint64_t size)
{
	if (variables->count == variables->capacity) {
		size_t capacity = variables->capacity ? variables->capacity * 2 : 16;
		struct variable *more = reallocarray(variables->list, capacity, sizeof(*more));

		if (!more)
			return -ENOMEM;
		variables->list = more;
		variables->capacity = capacity;
	}
	variables->list[variables->count++] = (struct variable){
		.name = name_hash(name, name_size),
		.size = readable ? size : UNREADABLE,
		.managed = managed,
	};
	if (!managed)
		names_add(variables, name, name_size);
	return 0;
}

void
gp_image_variables_add_unknown(struct gp_image_variables *variables)
{
	variables->all_known = false;
}

void
gp_image_variables_finish(struct gp_image_variables *variables)
{
	struct variable *list = variables->list;
	size_t kept = 0;

	if (variables->count == 0)
		return;
	qsort(list, variables->count, sizeof(*list), variable_compare);
	for (size_t i = 0; i < variables->count; i++) {
		if (kept == 0 || variable_compare(&list[i], &list[kept - 1]) != 0)
			list[kept++] = list[i];
		else
			list[kept - 1].managed |= list[i].managed;
	}
	variables->count = variables->capacity = kept;
	list = reallocarray(list, kept, sizeof(*list));
	if (list)
		variables->list = list;
}

/* Returns the index of the first variable of this name, or where it would be. */
static size_t
variable_find_first(const struct gp_image_variables *variables, uint64_t name)
{
	size_t low = 0, high = variables->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (variables->list[middle].name < name)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

bool
gp_image_variables_is_managed(const struct gp_image_variables *variables, const char *name)
{
	const uint64_t wanted = name_hash(name, strlen(name));
	bool managed = false;

	for (size_t i = variable_find_first(variables, wanted);
	     i < variables->count && variables->list[i].name == wanted; i++)
		managed |= variables->list[i].managed;
	return managed;
}

enum gp_variable_verdict
gp_image_variables_check(const struct gp_image_variables *variables, const char *name,
			 uint64_t size, uint64_t *has)
{
	const uint64_t wanted = name_hash(name, strlen(name));
	enum gp_variable_verdict verdict =
		variables->all_known ? GP_VARIABLE_ABSENT : GP_VARIABLE_UNKNOWN;
	size_t low = variable_find_first(variables, wanted);

	for (; low < variables->count && variables->list[low].name == wanted; low++) {
		const struct variable *variable = &variables->list[low];

		if (variable->size == UNREADABLE)
			/* The last entry of the name: no readable entry has the requested size. */
			return verdict == GP_VARIABLE_DIFFERS ? verdict : GP_VARIABLE_UNKNOWN;
		if (variable->size == size)
			return GP_VARIABLE_EQUAL;
		*has = variable->size;
		verdict = GP_VARIABLE_DIFFERS;
	}
	return verdict;
}
