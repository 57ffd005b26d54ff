/* SPDX-License-Identifier: Apache-2.0 */
#include "image/image_list.h"

#include "image/image_params.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct kernel_list {
	struct gp_kernel_info *kernels; /* name and params are allocated; absent: unreadable */
	uint32_t count, capacity;
	bool too_many;
	bool out_of_memory;
	struct gp_params_reader reader;
};

static void
list_destroy(struct kernel_list *kernel_list)
{
	for (uint32_t i = 0; i < kernel_list->count; i++) {
		free((void *)kernel_list->kernels[i].name);
		free((void *)kernel_list->kernels[i].params);
	}
	free(kernel_list->kernels);
	free(kernel_list);
}

static bool
list_grow(struct kernel_list *kernel_list)
{
	uint32_t capacity = kernel_list->capacity ? 2 * kernel_list->capacity : 16;
	struct gp_kernel_info *grown;

	if (kernel_list->count < kernel_list->capacity)
		return true;
	grown = reallocarray(kernel_list->kernels, capacity, sizeof(*grown));
	if (!grown)
		return false;
	kernel_list->kernels = grown;
	kernel_list->capacity = capacity;
	return true;
}

static void
list_add(void *data, const struct gp_kernel_params *kernel)
{
	struct kernel_list *kernel_list = data;
	struct gp_kernel_info *info;

	if (kernel_list->count >= 2 * GP_IMAGE_KERNELS_MAX)
		kernel_list->too_many = true;
	if (kernel_list->too_many || kernel_list->out_of_memory)
		return;
	if (!list_grow(kernel_list)) {
		kernel_list->out_of_memory = true;
		return;
	}
	info = &kernel_list->kernels[kernel_list->count++];
	*info = (struct gp_kernel_info){
		.name = strndup(kernel->name, kernel->name_size),
		.param_count = kernel->count,
		.absent = !kernel->readable,
		.params = calloc(kernel->count + 1, sizeof(struct gp_param_info)),
	};
	if (!info->name || !info->params)
		kernel_list->out_of_memory = true;
	else if (kernel->count > 0)
		memcpy((void *)info->params, kernel->params,
		       kernel->count * sizeof(kernel->params[0]));
}

/* Readable kernels precede unreadable ones of the same name. */
static int
kernel_compare_names(const void *left, const void *right)
{
	const struct gp_kernel_info *a = left, *b = right;
	int order = strcmp(a->name, b->name);

	return order ? order : a->absent - b->absent;
}

/* A reader may have reported a kernel as unreadable before it found a readable form. Returns false
 * if a kernel has no readable form. */
static bool
list_remove_duplicates(struct kernel_list *kernel_list)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < kernel_list->count; i++) {
		struct gp_kernel_info *info = &kernel_list->kernels[i];

		if (kept && strcmp(info->name, kernel_list->kernels[kept - 1].name) == 0) {
			free((void *)info->name);
			free((void *)info->params);
		} else {
			kernel_list->kernels[kept++] = *info;
		}
	}
	kernel_list->count = kept;
	for (uint32_t i = 0; i < kept; i++) {
		if (kernel_list->kernels[i].absent)
			return false;
	}
	return true;
}

/* Encodes and decodes the list, which puts it into a single allocation. */
static int
list_to_info(struct kernel_list *kernel_list, struct gp_image_info **info_p)
{
	struct gp_image_info info = { .kernels = kernel_list->kernels };
	void *data;
	size_t size;
	int r;

	qsort(kernel_list->kernels, kernel_list->count, sizeof(*kernel_list->kernels),
	      kernel_compare_names);
	if (!list_remove_duplicates(kernel_list))
		return GP_IMAGE_E_NONE;
	info.kernel_count = kernel_list->count;
	r = gp_image_info_encode(&info, &data, &size);
	if (r)
		return r;
	r = gp_image_info_decode(info_p, (struct gp_bytes){ data, size });
	free(data);
	return r == -EPROTO ? GP_IMAGE_E_NONE : r;
}

/* Reads the code that the device would use: a fatbin's best machine code, or the PTX to compile. */
static int
image_read(struct kernel_list *kernel_list, const struct gp_image *image,
	   const struct gp_image_target *target)
{
	struct gp_image_blob blob = gp_image_blob(image, 0);
	enum gp_image_kind kind = gp_image_type(image);
	struct gp_fatbin_entry entry;
	bool understood;
	int r;

	if (kind == GP_IMAGE_ELF || kind == GP_IMAGE_PTX)
		return gp_params_read_code(&kernel_list->reader,
					   kind == GP_IMAGE_ELF ? GP_FATBIN_ELF : GP_FATBIN_PTX,
					   blob.data, blob.size)
			       ? 0
			       : GP_IMAGE_E_NONE;
	if (gp_image_count(image) != 1)
		return GP_IMAGE_E_NONE;
	if (!gp_fatbin_best_code(blob, target, &entry) && gp_fatbin_best_ptx(blob, target, &entry))
		return GP_IMAGE_E_NONE;
	r = gp_params_read_entry(&kernel_list->reader, &entry, &understood);
	return r || understood ? r : GP_IMAGE_E_NONE;
}

int
gp_image_list(const struct gp_image *image, const struct gp_image_target *target,
	      struct gp_image_info **info_p)
{
	struct kernel_list *kernel_list = calloc(1, sizeof(*kernel_list));
	int r;

	if (!kernel_list)
		return -ENOMEM;
	kernel_list->reader.found = list_add;
	kernel_list->reader.data = kernel_list;
	r = image_read(kernel_list, image, target);
	if (kernel_list->out_of_memory)
		r = -ENOMEM;
	else if (kernel_list->too_many)
		r = GP_IMAGE_E_NONE;
	if (r == 0)
		r = list_to_info(kernel_list, info_p);
	list_destroy(kernel_list);
	return r;
}
