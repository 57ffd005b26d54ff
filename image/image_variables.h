/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sizes of an image's variables, and which of them are managed memory, as read from the image
 * itself. A program copies as many bytes as a variable has, so a daemon must not be able to choose
 * the size.
 *
 * Ownership: gp_image_check() creates it; freed by the caller with gp_image_variables_destroy().
 * Threads: immutable after gp_image_variables_finish(); any thread may query it.
 */
#ifndef GP_IMAGE_VARIABLES_H
#define GP_IMAGE_VARIABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gp_image_variables;

enum gp_variable_verdict {
	GP_VARIABLE_EQUAL,
	GP_VARIABLE_DIFFERS,
	GP_VARIABLE_ABSENT,  /* the whole image was understood, and has no variable of this name */
	GP_VARIABLE_UNKNOWN, /* the variable exists, or may exist, in an unknown form */
};

/* Creates an empty list that counts as completely understood. NULL: out of memory. */
struct gp_image_variables *gp_image_variables_create(void);
/* Accepts NULL. */
void gp_image_variables_destroy(struct gp_image_variables *variables);

/* Adds a variable whose name has name_size bytes; the same name may be added again with another
 * size. Returns 0 or -ENOMEM. */
int gp_image_variables_add(struct gp_image_variables *variables, const char *name, size_t name_size,
			   bool readable, bool managed, uint64_t size)
	__attribute__((warn_unused_result));
/* Records that the image may have further variables. */
void gp_image_variables_add_unknown(struct gp_image_variables *variables);
/* Must be called after the last addition, before queries. */
void gp_image_variables_finish(struct gp_image_variables *variables);

/* Compares a name and size with the image. *has: the image's size, set for GP_VARIABLE_DIFFERS. */
enum gp_variable_verdict gp_image_variables_check(const struct gp_image_variables *variables,
						  const char *name, uint64_t size, uint64_t *has);

/* Returns an upper bound of the total bytes of all variables; UINT64_MAX: unknown. */
uint64_t gp_image_variables_get_total(const struct gp_image_variables *variables);

/* Returns the name of a variable, without managed variables and those of the compiler; NULL after
 * the last one, or always if the image has more than GP_VARIABLE_NAMES_MAX. */
#define GP_VARIABLE_NAMES_MAX 16
const char *gp_image_variables_get_name(const struct gp_image_variables *variables, size_t number);

/* Whether the image has a managed variable of this name. */
bool gp_image_variables_is_managed(const struct gp_image_variables *variables, const char *name);

#endif /* GP_IMAGE_VARIABLES_H */
