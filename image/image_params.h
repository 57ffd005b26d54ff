/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reader for kernel parameters and variable sizes in device code (an ELF or PTX text) from an
 * untrusted source.
 *
 * Ownership: the reader is the caller's.
 * Threads: any; one thread at a time per reader.
 */
#ifndef GP_IMAGE_PARAMS_H
#define GP_IMAGE_PARAMS_H

#include "protocol/image_info.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gp_fatbin_entry;

/* The function that device code calls for printf. */
#define GP_PRINT_SYMBOL "vprintf"

/* Parameters of a kernel; valid only during the callback. */
struct gp_kernel_params {
	const char *name; /* name_size bytes, without a NUL */
	size_t name_size;
	bool readable; /* false: the kernel exists, but in an unknown form */
	uint32_t count;
	const struct gp_param_info *params;
};

typedef void gp_kernel_params_fn(void *data, const struct gp_kernel_params *kernel);

/* A variable in global or constant memory; valid only during the callback. */
struct gp_variable_size {
	const char *name; /* name_size bytes, without a NUL */
	size_t name_size;
	bool readable; /* false: the variable exists, but in an unknown form */
	bool managed;  /* __managed__ */
	uint64_t size;
	const char *space; /* PTX: text of the declaration at .global or .const; otherwise NULL */
};

typedef void gp_variable_size_fn(void *data, const struct gp_variable_size *variable);

/* Large: do not allocate on the stack. */
struct gp_params_reader {
	/* Called for each kernel; possibly twice for the same kernel, first unreadable. */
	gp_kernel_params_fn *found;
	/* Called for each defined variable; NULL: not needed. */
	gp_variable_size_fn *found_variable;
	void *data;
	bool prints; /* set if some of the code calls printf; requires found_variable */
	struct gp_param_info params[GP_KERNEL_PARAMS_MAX];
};

/* The readers return whether all of the code was understood; if not, there may be further kernels
 * or variables. */

/* Reads a cubin or a relocatable ELF. */
bool gp_params_read_elf(struct gp_params_reader *reader, const uint8_t *bytes, size_t size);
/* Reads PTX text, which ends at its first NUL or after `size` bytes. */
bool gp_params_read_ptx(struct gp_params_reader *reader, const char *text, size_t size);
/* Reads code of a kind (enum gp_fatbin_kind); returns false for other kinds. */
bool gp_params_read_code(struct gp_params_reader *reader, unsigned int kind, const void *bytes,
			 size_t size);

/* Reads a fatbin entry, decompressed if necessary. *understood_p: as returned by the readers above.
 * Returns 0 or -ENOMEM. */
int gp_params_read_entry(struct gp_params_reader *reader, const struct gp_fatbin_entry *entry,
			 bool *understood_p) __attribute__((warn_unused_result));

#endif /* GP_IMAGE_PARAMS_H */
