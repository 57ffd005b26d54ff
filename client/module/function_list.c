/* SPDX-License-Identifier: Apache-2.0 */
#include "client/module/function_list.h"

#include "client/module/function.h"
#include "client/module/image.h"

#include <stdlib.h>

bool
gpc_function_list_init(struct gpc_function_list *list)
{
	list->made = calloc((size_t)list->image->info->kernel_count + 1, sizeof(list->made[0]));
	return list->made != NULL;
}

void
gpc_function_list_fini(struct gpc_function_list *list)
{
	for (uint32_t i = 0; list->made && i < list->image->info->kernel_count; i++) {
		if (list->made[i])
			gpc_handle_remove(&list->made[i]->handle);
	}
	free(list->made);
	list->made = NULL;
}

static struct gpc_function *
function_create(const struct gpc_function_list *list, uint32_t index)
{
	struct gpc_function *function = gpc_handle_new(list->kind, sizeof(*function));

	if (!function)
		return NULL;
	function->image = list->image;
	function->context = list->context;
	function->index = index;
	function->info = &list->image->info->kernels[index];
	gpc_handle_publish(&function->handle);
	return function;
}

struct gpc_function *
gpc_function_list_get(struct gpc_function_list *list, uint32_t index)
{
	struct gpc_function *function;

	(void)pthread_mutex_lock(&list->image->lock);
	if (!list->made[index])
		list->made[index] = function_create(list, index);
	function = list->made[index];
	(void)pthread_mutex_unlock(&list->image->lock);
	return function;
}

CUresult
gpc_function_list_find(struct gpc_function_list *list, const char *name, void **token_p)
{
	struct gpc_function *function;
	int64_t index;

	if (!token_p || !name)
		return CUDA_ERROR_INVALID_VALUE;
	index = gpc_image_find_kernel(list->image, name);
	if (index < 0)
		return CUDA_ERROR_NOT_FOUND;
	function = gpc_function_list_get(list, (uint32_t)index);
	if (!function)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*token_p = function->handle.token;
	return CUDA_SUCCESS;
}

CUresult
gpc_function_list_tokens(struct gpc_function_list *list, void **tokens, unsigned int max)
{
	if (!tokens)
		return CUDA_ERROR_INVALID_VALUE;
	for (uint32_t i = 0; i < max && i < list->image->info->kernel_count; i++) {
		struct gpc_function *function = gpc_function_list_get(list, i);

		if (!function)
			return CUDA_ERROR_OUT_OF_MEMORY;
		tokens[i] = function->handle.token;
	}
	return CUDA_SUCCESS;
}
