/* SPDX-License-Identifier: Apache-2.0 */
#include "image/image_list.h"

#include "image/image_params.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct list {
	struct gp_kernel_info *kernels; /* name and params are of their own; absent: unreadable */
	uint32_t count, room;
	bool too_many;
	bool out_of_memory;
	struct gp_params_reader reader;
};

static void
drop(struct list *list)
{
	for (uint32_t i = 0; i < list->count; i++) {
		free((void *)list->kernels[i].name);
		free((void *)list->kernels[i].params);
	}
	free(list->kernels);
	free(list);
}

static bool
grow(struct list *list)
{
	uint32_t room = list->room ? 2 * list->room : 16;
	struct gp_kernel_info *grown;

	if (list->count < list->room)
		return true;
	grown = reallocarray(list->kernels, room, sizeof(*grown));
	if (!grown)
		return false;
	list->kernels = grown;
	list->room = room;
	return true;
}

static void
found(void *data, const struct gp_kernel_params *kernel)
{
	struct list *list = data;
	struct gp_kernel_info *info;

	if (list->count >= 2 * GP_IMAGE_KERNELS_MAX)
		list->too_many = true;
	if (list->too_many || list->out_of_memory)
		return;
	if (!grow(list)) {
		list->out_of_memory = true;
		return;
	}
	info = &list->kernels[list->count++];
	*info = (struct gp_kernel_info){
		.name = strndup(kernel->name, kernel->name_size),
		.param_count = kernel->count,
		.absent = !kernel->readable,
		.params = calloc(kernel->count + 1, sizeof(struct gp_param_info)),
	};
	if (!info->name || !info->params)
		list->out_of_memory = true;
	else if (kernel->count > 0)
		memcpy((void *)info->params, kernel->params,
		       kernel->count * sizeof(kernel->params[0]));
}

/* Of one name the readable first. */
static int
by_name(const void *left, const void *right)
{
	const struct gp_kernel_info *a = left, *b = right;
	int order = strcmp(a->name, b->name);

	return order ? order : a->absent - b->absent;
}

/* A reader that finds a kernel in a form that is known has perhaps told of it before.  false: one
 * is in none. */
static bool
keep_one_of_each(struct list *list)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < list->count; i++) {
		struct gp_kernel_info *info = &list->kernels[i];

		if (kept && strcmp(info->name, list->kernels[kept - 1].name) == 0) {
			free((void *)info->name);
			free((void *)info->params);
		} else {
			list->kernels[kept++] = *info;
		}
	}
	list->count = kept;
	for (uint32_t i = 0; i < kept; i++) {
		if (list->kernels[i].absent)
			return false;
	}
	return true;
}

/* As it is told, and so in one piece. */
static int
finish(struct list *list, struct gp_image_info **info_p)
{
	struct gp_image_info info = { .kernels = list->kernels };
	void *data;
	size_t size;
	int r;

	qsort(list->kernels, list->count, sizeof(*list->kernels), by_name);
	if (!keep_one_of_each(list))
		return GP_IMAGE_E_NONE;
	info.kernel_count = list->count;
	r = gp_image_info_encode(&info, &data, &size);
	if (r)
		return r;
	r = gp_image_info_decode(info_p, (struct gp_bytes){ data, size });
	free(data);
	return r == -EPROTO ? GP_IMAGE_E_NONE : r;
}

/* The code that the device would take: of a fatbin the best, or the text to compile. */
static int
read_image(struct list *list, const struct gp_image *image, const struct gp_image_target *target)
{
	struct gp_image_blob blob = gp_image_blob(image, 0);
	enum gp_image_kind kind = gp_image_type(image);
	struct gp_fatbin_entry entry;
	bool understood;
	int r;

	if (kind == GP_IMAGE_ELF || kind == GP_IMAGE_PTX)
		return gp_params_of_code(&list->reader,
					 kind == GP_IMAGE_ELF ? GP_FATBIN_ELF : GP_FATBIN_PTX,
					 blob.data, blob.size)
			       ? 0
			       : GP_IMAGE_E_NONE;
	if (gp_image_count(image) != 1)
		return GP_IMAGE_E_NONE;
	if (!gp_fatbin_best_code(blob, target, &entry) && gp_fatbin_best_ptx(blob, target, &entry))
		return GP_IMAGE_E_NONE;
	r = gp_params_of_entry(&list->reader, &entry, &understood);
	return r || understood ? r : GP_IMAGE_E_NONE;
}

int
gp_image_list(const struct gp_image *image, const struct gp_image_target *target,
	      struct gp_image_info **info_p)
{
	struct list *list = calloc(1, sizeof(*list));
	int r;

	if (!list)
		return -ENOMEM;
	list->reader.found = found;
	list->reader.data = list;
	r = read_image(list, image, target);
	if (list->out_of_memory)
		r = -ENOMEM;
	else if (list->too_many)
		r = GP_IMAGE_E_NONE;
	if (r == 0)
		r = finish(list, info_p);
	drop(list);
	return r;
}
