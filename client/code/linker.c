/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The linker of device code (cuLink*).  The linking is the daemon's; files are read here, and what
 * it says of them comes back with every call, into the buffers that the application gave when it
 * made the linker.
 */
#include "client/code/jit_options.h"
#include "client/context/object.h"
#include "gpc_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* In the object's memory. */
struct linker {
	struct gpc_jit_log info, error;
};

CUresult
gpc_cuLinkCreate_v2(unsigned int numOptions, CUjit_option *options, void **optionValues,
		    CUlinkState *stateOut)
{
	const struct gpc_jit_options jit = { options, optionValues, numOptions };
	struct gp_args_gpLinkCreate args = { 0 };
	struct gpc_request request = { 0 };
	struct gpc_context *context;
	struct gpc_object *object;
	struct linker *linker;
	CUresult result = gpc_enter(&context);

	if (result != CUDA_SUCCESS)
		return result;
	if (!stateOut)
		return CUDA_ERROR_INVALID_VALUE;
	result = gpc_object_create(GPC_KIND_LINKER, context, &object);
	if (result != CUDA_SUCCESS)
		return result;
	args.linker = object->handle.id;
	linker = gp_scratch_items(&object->memory, 1, sizeof(*linker));
	result = linker ? gpc_pack_CUjit_option(numOptions, options, optionValues, &object->memory,
						&args.options)
			: CUDA_ERROR_OUT_OF_MEMORY;
	if (result == CUDA_SUCCESS)
		result = gpc_start_gpLinkCreate(context, &args, &request);
	if (result == CUDA_SUCCESS)
		result = gpc_request_wait_own(&request);
	free(request.reply);
	if (result != CUDA_SUCCESS) {
		gpc_object_destroy(object);
		return result;
	}
	linker->info = gpc_jit_log_find(&jit, false);
	linker->error = gpc_jit_log_find(&jit, true);
	gpc_jit_log_fill(&linker->info, (struct gp_bytes){ 0 });
	gpc_jit_log_fill(&linker->error, (struct gp_bytes){ 0 });
	object->extra = linker;
	*stateOut = object->handle.token;
	return CUDA_SUCCESS;
}

static CUresult
add(const struct gpc_object *object, CUjitInputType type, void *data, size_t size, const char *name,
    const struct gpc_jit_options *jit)
{
	struct gp_args_gpLinkAdd args = { .linker = object->handle.id, .type = (int32_t)type };
	const struct linker *linker = object->extra;
	const struct iovec bulk = { data, size };
	struct gp_reply_gpLinkAdd reply;
	struct gp_scratch scratch = { 0 };
	void *raw = NULL;
	CUresult result =
		gpc_pack_CUjit_option(jit->count, jit->keys, jit->values, &scratch, &args.options);

	if (name)
		args.name = (struct gp_bytes){ name, strnlen(name, 4096) };
	if (result == CUDA_SUCCESS)
		result = gpc_wait_gpLinkAdd(object->context, &args, &reply, &bulk, 1, &raw);
	if (raw) {
		gpc_jit_log_fill(&linker->info, reply.info);
		gpc_jit_log_fill(&linker->error, reply.error);
	}
	free(raw);
	gp_scratch_free(&scratch);
	return result;
}

CUresult
gpc_cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void *data, size_t size,
		     const char *name, unsigned int numOptions, CUjit_option *options,
		     void **optionValues)
{
	const struct gpc_jit_options jit = { options, optionValues, numOptions };
	struct gpc_object *object;
	CUresult result = gpc_enter_kind(GPC_KIND_LINKER, state, &object);

	if (result != CUDA_SUCCESS)
		return result;
	if (!data || size == 0 || size > UINT32_MAX || (unsigned int)type >= CU_JIT_NUM_INPUT_TYPES)
		return CUDA_ERROR_INVALID_VALUE;
	return add(object, type, data, size, name, &jit);
}

/* All of a file; *data_p is to be freed. */
static CUresult
read_all(int fd, void **data_p, size_t *size_p)
{
	struct stat status;
	size_t size, at = 0;
	ssize_t n = 1;

	if (fstat(fd, &status) || !S_ISREG(status.st_mode) || status.st_size > UINT32_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	size = (size_t)status.st_size;
	*data_p = calloc(1, size + 1); /* PTX ends with a NUL byte */
	if (!*data_p)
		return CUDA_ERROR_OUT_OF_MEMORY;
	while (at < size && (n > 0 || (n < 0 && errno == EINTR))) {
		n = read(fd, (char *)*data_p + at, size - at);
		at += n > 0 ? (size_t)n : 0;
	}
	*size_p = at;
	return at == size && size > 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE;
}

CUresult
gpc_cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char *path,
		     unsigned int numOptions, CUjit_option *options, void **optionValues)
{
	const struct gpc_jit_options jit = { options, optionValues, numOptions };
	struct gpc_object *object;
	CUresult result = gpc_enter_kind(GPC_KIND_LINKER, state, &object);
	void *data = NULL;
	size_t size = 0;
	int fd;

	if (result != CUDA_SUCCESS)
		return result;
	if (!path || (unsigned int)type >= CU_JIT_NUM_INPUT_TYPES)
		return CUDA_ERROR_INVALID_VALUE;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return CUDA_ERROR_FILE_NOT_FOUND;
	result = read_all(fd, &data, &size);
	(void)close(fd);
	if (result == CUDA_SUCCESS)
		result = add(object, type, data, size + (type == CU_JIT_INPUT_PTX), path, &jit);
	free(data);
	return result;
}

CUresult
gpc_cuLinkComplete(CUlinkState state, void **cubinOut, size_t *sizeOut)
{
	struct gp_args_gpLinkComplete args = { 0 };
	struct gp_reply_gpLinkComplete reply;
	const struct linker *linker;
	struct gpc_object *object;
	void *raw;
	CUresult result = gpc_enter_kind(GPC_KIND_LINKER, state, &object);

	if (result != CUDA_SUCCESS)
		return result;
	if (!cubinOut)
		return CUDA_ERROR_INVALID_VALUE;
	linker = object->extra;
	args.linker = object->handle.id;
	result = gpc_wait_gpLinkComplete(object->context, &args, &reply, &raw);
	if (raw) {
		gpc_jit_log_fill(&linker->info, reply.info);
		gpc_jit_log_fill(&linker->error, reply.error);
	}
	if (result == CUDA_SUCCESS) {
		/* The linker's own, until it is destroyed. */
		*cubinOut = (void *)(uintptr_t)reply.image.data;
		if (sizeOut)
			*sizeOut = reply.image.size;
		gp_scratch_adopt(&object->memory, raw);
		return CUDA_SUCCESS;
	}
	free(raw);
	return result;
}
