/* SPDX-License-Identifier: Apache-2.0 */
/*
 * List of an image's variables with their sizes, and whether they are managed memory, as read from
 * the image itself. A program copies as many bytes as a variable has, so a daemon must not be able
 * to choose the size.
 *
 * Ownership: the creator, or the caller of gp_image_check(), frees it with
 * gp_image_variables_destroy(). Names are copied or hashed.
 * Threads: one thread until gp_image_variables_finish(); immutable afterwards, and any thread may
 * query it.
 * Units: bytes.
 */
#ifndef GP_IMAGE_VARIABLES_H
#define GP_IMAGE_VARIABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gp_image_variables;

enum gp_variable_verdict {
	/* the image has a variable of this name and size */
	GP_VARIABLE_EQUAL,
	/* the image has a variable of this name, but not of this size */
	GP_VARIABLE_DIFFERS,
	/* all of the image was understood, and it has no variable of this name */
	GP_VARIABLE_ABSENT,
	GP_VARIABLE_UNKNOWN, /* the variable exists, or may exist, in an unknown form */
};

/* Creates an empty list that counts as completely understood. Returns NULL if out of memory. */
struct gp_image_variables *gp_image_variables_create(void);
/* Frees the list. Accepts NULL. */
void gp_image_variables_destroy(struct gp_image_variables *variables);

/* Adds a variable whose name has name_size bytes. The same name may be added again, also with
 * another size, because several parts of an image may define it. readable: whether `size` is known.
 * Returns 0, or -ENOMEM with the list unchanged. */
int gp_image_variables_add(struct gp_image_variables *variables, const char *name, size_t name_size,
			   bool readable, bool managed, uint64_t size)
	__attribute__((warn_unused_result));
/* Records that the image may have further variables; names that are not in the list are then
 * GP_VARIABLE_UNKNOWN. */
void gp_image_variables_add_unknown(struct gp_image_variables *variables);
/* Sorts the list. Must be called after the last addition and before queries. */
void gp_image_variables_finish(struct gp_image_variables *variables);

/* Compares a variable's name and size, as stated by the daemon, with the image. *has: a size of the
 * variable in the image, set only for GP_VARIABLE_DIFFERS. */
enum gp_variable_verdict gp_image_variables_check(const struct gp_image_variables *variables,
						  const char *name, uint64_t size, uint64_t *has);

/* Returns an upper bound of the total size of all variables; UINT64_MAX: unknown, because a size is
 * unknown or there may be further variables. */
uint64_t gp_image_variables_get_total(const struct gp_image_variables *variables);

/* Maximum number of names that gp_image_variables_get_name() returns. */
#define GP_VARIABLE_NAMES_MAX 16
/* Returns the name of the variable with this number, from 0 on; borrowed. Managed variables and
 * variables of the compiler (names that begin with $ or .) are not counted. NULL: after the last
 * one; for every number if there are more than GP_VARIABLE_NAMES_MAX or memory was exhausted. */
const char *gp_image_variables_get_name(const struct gp_image_variables *variables, size_t number);

/* Returns whether the image has a managed variable of this name. */
bool gp_image_variables_is_managed(const struct gp_image_variables *variables, const char *name);

#endif /* GP_IMAGE_VARIABLES_H */
