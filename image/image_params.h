/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reader for kernel parameters and variable sizes in device code (an ELF or PTX text) from an
 * untrusted source. It reports each kernel and variable by a callback.
 *
 * Ownership: the caller provides the reader, with its callbacks and `data` set; code is borrowed
 * during the call.
 * Threads: any; one thread at a time per reader. The callbacks run in the calling thread.
 * Units: bytes.
 */
#ifndef GP_IMAGE_PARAMS_H
#define GP_IMAGE_PARAMS_H

#include "protocol/image_info.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gp_fatbin_entry;

/* Name of the driver's function that device code calls for printf(). */
#define GP_PRINT_SYMBOL "vprintf"

/* Parameters of a kernel; valid only during the callback. */
struct gp_kernel_params {
	const char *name; /* name_size bytes, without a NUL */
	size_t name_size;
	/* whether the parameters could be read; false: the kernel exists, but in an unknown form */
	bool readable;
	uint32_t count;                     /* number of parameters; 0 if not readable */
	const struct gp_param_info *params; /* `count` elements, in declaration order */
};

typedef void gp_kernel_params_fn(void *data, const struct gp_kernel_params *kernel);

/* A variable in global or constant memory; valid only during the callback. */
struct gp_variable_size {
	const char *name; /* name_size bytes, without a NUL */
	size_t name_size;
	/* whether the size could be read; false: the variable exists, but in an unknown form */
	bool readable;
	bool managed;      /* __managed__ */
	uint64_t size;     /* undefined if not readable */
	const char *space; /* PTX: points into the text at the word .global or .const of the
			      declaration, without a NUL; ELF: NULL */
};

typedef void gp_variable_size_fn(void *data, const struct gp_variable_size *variable);

/* State of a reader. Large: do not allocate it on the stack. */
struct gp_params_reader {
	/* Called for each kernel. May be called several times for the same kernel, also as
	 * unreadable before or after a call with its parameters. */
	gp_kernel_params_fn *found;
	/* Called for each defined variable; NULL: not needed. */
	gp_variable_size_fn *found_variable;
	/* passed to the callbacks */
	void *data;
	bool prints; /* Set to true if code may call printf: a PTX text contains GP_PRINT_SYMBOL, or
			an undefined symbol of an ELF has this name. Not set while found_variable is
			NULL. The caller initializes it to false. */
	/* scratch memory of the functions below */
	struct gp_param_info params[GP_KERNEL_PARAMS_MAX];
};

/* The gp_params_read_ functions that return bool return whether all of the code was understood; if
 * not, there may be further kernels or variables. */

/* Reads a cubin or a relocatable ELF. */
bool gp_params_read_elf(struct gp_params_reader *reader, const uint8_t *bytes, size_t size);
/* Reads PTX text, which ends at its first NUL or after `size` bytes. Returns false also for a PTX
 * version with an unknown grammar. */
bool gp_params_read_ptx(struct gp_params_reader *reader, const char *text, size_t size);
/* Reads code of a kind (enum gp_fatbin_kind) with the function above for it; returns false for
 * other kinds. */
bool gp_params_read_code(struct gp_params_reader *reader, unsigned int kind, const void *bytes,
			 size_t size);

/* Reads a fatbin entry, decompressed if necessary. Returns 0, with *understood_p set to the result
 * of gp_params_read_code(), or to false if the entry cannot be decompressed; or -ENOMEM. */
int gp_params_read_entry(struct gp_params_reader *reader, const struct gp_fatbin_entry *entry,
			 bool *understood_p) __attribute__((warn_unused_result));

#endif /* GP_IMAGE_PARAMS_H */
