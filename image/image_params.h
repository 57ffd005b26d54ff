/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parameters of kernels and the sizes of variables, read off device code itself: an ELF or PTX
 * text, of which nothing is believed.  Any thread; a reader is one thread's, and belongs to the
 * caller.
 */
#ifndef GP_IMAGE_PARAMS_H
#define GP_IMAGE_PARAMS_H

#include "protocol/image_info.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gp_fatbin_entry;

/* What device code calls for printf. */
#define GP_PRINT_SYMBOL "vprintf"

/* What the code says of one kernel; all of it is valid during the call only. */
struct gp_kernel_params {
	const char *name; /* name_size bytes, no NUL behind them */
	size_t name_size;
	bool readable; /* false: there is such a kernel, in a form that is not known here */
	uint32_t count;
	const struct gp_param_info *params;
};

typedef void gp_kernel_params_fn(void *data, const struct gp_kernel_params *kernel);

/* What it says of one variable, in global or constant memory; valid during the call only. */
struct gp_variable_size {
	const char *name; /* name_size bytes, no NUL behind them */
	size_t name_size;
	bool readable; /* false: there is such a variable, in a form that is not known here */
	bool managed;  /* __managed__ */
	uint64_t size;
	const char *space; /* of PTX: where its declaration says .global or .const; else NULL */
};

typedef void gp_variable_size_fn(void *data, const struct gp_variable_size *variable);

/* It is large: not for the stack. */
struct gp_params_reader {
	gp_kernel_params_fn *found; /* for each kernel; for some perhaps twice, unreadable first */
	gp_variable_size_fn *found_variable; /* for each that is defined; NULL: not asked for */
	void *data;
	bool prints; /* set where some of the code calls printf; needs found_variable */
	struct gp_param_info params[GP_KERNEL_PARAMS_MAX];
};

/* These return whether all was understood; if not there may be kernels or variables that were not
 * found. */

/* A cubin, or a relocatable one. */
bool gp_params_read_elf(struct gp_params_reader *reader, const uint8_t *bytes, size_t size);
/* The text ends at its first NUL or after size bytes. */
bool gp_params_read_ptx(struct gp_params_reader *reader, const char *text, size_t size);
/* kind: enum gp_fatbin_kind; of another kind nothing is understood. */
bool gp_params_read_code(struct gp_params_reader *reader, unsigned int kind, const void *bytes,
			 size_t size);

/* The same of an entry of a fatbin, extracted first if it is compressed.  Returns: 0; -ENOMEM. */
int gp_params_read_entry(struct gp_params_reader *reader, const struct gp_fatbin_entry *entry,
			 bool *understood_p) __attribute__((warn_unused_result));

#endif /* GP_IMAGE_PARAMS_H */
