/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzer of the readers of kernel parameters and variables in device code: ELF, PTX and their
 * containers. The results are within the limits of a launch, and are then passed to the check of a
 * daemon's list. */
#include "image/image_check.h"
#include "image/image_params.h"
#include "protocol/frame.h"

#include <stdlib.h>
#include <string.h>

#define KERNELS_MAX 32
#define NAME_SIZE 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The first kernels that were found, in the form of a daemon's list. */
struct list {
	struct gp_image_info info;
	struct gp_kernel_info kernels[KERNELS_MAX];
	char names[KERNELS_MAX][NAME_SIZE];
	struct gp_param_info params[KERNELS_MAX][GP_KERNEL_PARAMS_MAX];
	char variable[NAME_SIZE]; /* the last that has a size */
	uint64_t variable_size;
};

static void
found(void *data, const struct gp_kernel_params *kernel)
{
	struct list *list = data;
	uint32_t number = list->info.kernel_count, end = 0;

	for (uint32_t i = 0; i < kernel->count; i++) {
		if (!kernel->readable || kernel->params[i].offset < end ||
		    kernel->params[i].size > GP_LAUNCH_PARAMS_MAX - kernel->params[i].offset)
			abort();
		end = kernel->params[i].offset + kernel->params[i].size;
	}
	if (number == KERNELS_MAX || kernel->name_size >= NAME_SIZE || !kernel->readable)
		return;
	memcpy(list->names[number], kernel->name, kernel->name_size);
	list->names[number][kernel->name_size] = '\0';
	if (kernel->count)
		memcpy(list->params[number], kernel->params,
		       kernel->count * sizeof(*kernel->params));
	list->kernels[number] = (struct gp_kernel_info){ .name = list->names[number],
							 .param_count = kernel->count,
							 .params = list->params[number] };
	list->info.kernels = list->kernels;
	list->info.kernel_count++;
}

static void
found_variable(void *data, const struct gp_variable_size *variable)
{
	struct list *list = data;

	if (!variable->readable || variable->name_size >= NAME_SIZE || variable->size == UINT64_MAX)
		return;
	memcpy(list->variable, variable->name, variable->name_size);
	list->variable[variable->name_size] = '\0';
	list->variable_size = variable->size;
}

static void
check(const struct gp_image *image, struct list *list, struct gp_params_reader *reader)
{
	const struct gp_image_target target = { .major = 9 };
	struct gp_image_blob blob = gp_image_blob(image, 0);
	char difference[GP_IMAGE_DIFFERENCE_SIZE];
	struct gp_image_variables *variables;
	enum gp_image_kind kind = gp_image_type(image);
	uint64_t has;
	bool direct = kind == GP_IMAGE_ELF || kind == GP_IMAGE_PTX;
	int r;

	/* For a fatbin, those of the bytes themselves will do. */
	if (direct) {
		list->info.kernel_count = 0;
		list->variable_size = 0;
		(void)(kind == GP_IMAGE_ELF
			       ? gp_params_read_elf(reader, blob.data, blob.size)
			       : gp_params_read_ptx(reader, (const char *)blob.data, blob.size));
	}
	r = gp_image_check(image, &target, &list->info, &variables, difference);
	if (direct && r == GP_IMAGE_E_DIFFERS)
		abort();
	if (r == 0) {
		if (direct && list->variable_size &&
		    gp_image_variables_check(variables, list->variable, list->variable_size,
					     &has) != GP_VARIABLE_EQUAL)
			abort();
		gp_image_variables_destroy(variables);
	}
	for (uint32_t i = 0; direct && r == 0 && i < list->info.kernel_count; i++) {
		if (list->kernels[i].absent)
			abort();
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* Of its own size, but as aligned as images must be. */
	void *copy = malloc(size ? size : 1);
	static struct gp_params_reader reader = { .found = found,
						  .found_variable = found_variable };
	static struct list list;
	struct gp_image *image;

	if (!copy)
		return 0;
	memcpy(copy, data, size);
	memset(&list.info, 0, sizeof(list.info));
	reader.data = &list;
	(void)gp_params_read_elf(&reader, copy, size);
	(void)gp_params_read_ptx(&reader, copy, size);
	if (!gp_image_open(copy, size, &image)) {
		check(image, &list, &reader);
		gp_image_destroy(image);
	}
	free(copy);
	return 0;
}
