/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sizes of an image's variables, as the image itself says, and which are managed memory: a
 * program copies as many bytes as a variable has, and how many these are must not be for a daemon
 * to say.
 *
 * gp_image_check() makes it; it belongs to the caller.  Once made it does not change, and any
 * thread may ask.
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
	GP_VARIABLE_ABSENT,  /* all of the image was understood, and it has none of this name */
	GP_VARIABLE_UNKNOWN, /* it is there, or may be there, in a form that is not known */
};

/* NULL: no memory.  Nothing is in it, and all of it is understood. */
struct gp_image_variables *gp_image_variables_create(void);
/* NULL is none. */
void gp_image_variables_destroy(struct gp_image_variables *variables);

/* One of name_size bytes; a name may come again, with another size.  0 or -ENOMEM. */
int gp_image_variables_add(struct gp_image_variables *variables, const char *name, size_t name_size,
			   bool readable, bool managed, uint64_t size)
	__attribute__((warn_unused_result));
/* There may be others. */
void gp_image_variables_add_unknown(struct gp_image_variables *variables);
/* After the last one. */
void gp_image_variables_finish(struct gp_image_variables *variables);

/* Whether the image has one of this name and size; has: the size there, for GP_VARIABLE_DIFFERS. */
enum gp_variable_verdict gp_image_variables_check(const struct gp_image_variables *variables,
						  const char *name, uint64_t size, uint64_t *has);

/* How many bytes they have in all, at most; UINT64_MAX: that cannot be told. */
uint64_t gp_image_variables_get_total(const struct gp_image_variables *variables);

/* The names of the variables of an image that has few, but for managed memory and the compiler's
 * own; NULL behind the last one, and of an image with more. */
#define GP_VARIABLE_NAMES_MAX 16
const char *gp_image_variables_get_name(const struct gp_image_variables *variables, size_t number);

/* Whether it has one of this name that is managed memory. */
bool gp_image_variables_is_managed(const struct gp_image_variables *variables, const char *name);

#endif /* GP_IMAGE_VARIABLES_H */
