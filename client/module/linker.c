/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linker of device code (cuLink*). The daemon links. Input files are read here. The daemon's
 * messages are returned with each reply, in the log buffers that the application passed when it
 * created the linker.
 *
 * Results are cached: a program that links the same inputs again gets the earlier replies without
 * waiting. A linker has a key, the hash of everything it was given so far. As long as replies for
 * its key are cached, the daemon does not know the linker. On the first miss the linker is created
 * in the daemon and all its inputs are sent.
 */
#include "base/lock.h"
#include "base/sha256.h"
#include "client/base/stats.h"
#include "client/context/device.h"
#include "client/context/object.h"
#include "client/module/jit_options.h"
#include "client/session/session.h"
#include "gpc_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uthash.h>

/* Limits of the cache; the oldest entries are dropped. */
#define LINKED_MAX 256
#define LINKED_BYTES ((uint64_t)16 << 20)

/* A cached reply of the daemon. */
struct linked {
	uint8_t key[GP_SHA256_SIZE];
	struct gp_bytes info, error, image; /* stored in bytes[] */
	UT_hash_handle hh;
	uint64_t size;
	uint8_t bytes[];
};

static pthread_mutex_t linked_lock = PTHREAD_MUTEX_INITIALIZER;
static struct linked *all_linked GP_GUARDED_BY(linked_lock); /* oldest first */
static uint64_t linked_bytes GP_GUARDED_BY(linked_lock);

/* An input of a linker that the daemon does not know yet. */
struct input {
	struct input *next;
	int32_t type;
	struct gp_bytes name, options;
	void *data;
	size_t size;
};

/* Allocated, like its inputs, in the object's scratch memory. */
struct linker {
	struct gpc_jit_log info, error;
	struct gp_bytes options;
	struct input *inputs, **last;
	uint8_t key[GP_SHA256_SIZE];
	bool sent;     /* the daemon knows it */
	bool complete; /* completed from the cache, without the daemon */
	bool failed; /* the daemon reported an error, or the linker was completed there: the key is
			invalid */
};

/* Requests in flight that create a linker in the daemon belatedly. */
struct replay {
	struct gpc_request *requests;
	size_t count;
};

/* Extends the key by data. */
static void
key_add(uint8_t key[GP_SHA256_SIZE], const void *data, size_t size)
{
	uint8_t pair[2 * GP_SHA256_SIZE];

	memcpy(pair, key, GP_SHA256_SIZE);
	gp_sha256(data, size, pair + GP_SHA256_SIZE);
	gp_sha256(pair, sizeof(pair), key);
}

static void
key_init(struct linker *linker, const struct gpc_context *context)
{
	const struct gpc_session *session = context->scope.session;
	const int32_t device = context->device->remote;

	key_add(linker->key, &session, sizeof(session));
	key_add(linker->key, &device, sizeof(device));
	key_add(linker->key, linker->options.data, linker->options.size);
}

static void
key_add_input(uint8_t key[GP_SHA256_SIZE], const struct linker *linker, const struct input *input)
{
	memcpy(key, linker->key, GP_SHA256_SIZE);
	key_add(key, &input->type, sizeof(input->type));
	key_add(key, input->name.data, input->name.size);
	key_add(key, input->options.data, input->options.size);
	key_add(key, input->data, input->size);
}

/* Must differ from the key of any input. */
static void
key_complete(uint8_t key[GP_SHA256_SIZE], const struct linker *linker)
{
	memcpy(key, linker->key, GP_SHA256_SIZE);
	key_add(key, "complete", 8);
}

static struct gp_bytes
bytes_store(struct linked *linked, size_t *at, struct gp_bytes bytes)
{
	uint8_t *to = linked->bytes + *at;

	if (bytes.size)
		memcpy(to, bytes.data, bytes.size);
	*at += bytes.size;
	return (struct gp_bytes){ to, bytes.size };
}

static void
linked_drop_oldest(void) GP_LOCKED(linked_lock)
{
	struct linked *oldest = all_linked;

	HASH_DEL(all_linked, oldest);
	linked_bytes -= oldest->size;
	free(oldest);
}

static void
linked_store(const uint8_t key[GP_SHA256_SIZE], struct gp_bytes info, struct gp_bytes error,
	     struct gp_bytes image)
{
	const uint64_t size = sizeof(struct linked) + info.size + error.size + image.size;
	struct linked *linked = size <= LINKED_BYTES ? calloc(1, size) : NULL, *other;
	size_t at = 0;

	if (!linked)
		return;
	memcpy(linked->key, key, sizeof(linked->key));
	linked->info = bytes_store(linked, &at, info);
	linked->error = bytes_store(linked, &at, error);
	linked->image = bytes_store(linked, &at, image);
	linked->size = size;
	(void)pthread_mutex_lock(&linked_lock);
	HASH_FIND(hh, all_linked, key, sizeof(linked->key), other);
	if (other) {
		free(linked);
	} else {
		HASH_ADD(hh, all_linked, key, sizeof(linked->key), linked);
		linked_bytes += size;
		while (linked_bytes > LINKED_BYTES || HASH_COUNT(all_linked) > LINKED_MAX)
			linked_drop_oldest();
	}
	(void)pthread_mutex_unlock(&linked_lock);
}

/* Looks up a cached reply. If found, fills the logs; if image_p is not NULL, stores a copy of the
 * image, which the caller frees. */
static bool
linked_find(const struct linker *linker, const uint8_t key[GP_SHA256_SIZE], void **image_p,
	    size_t *size_p)
{
	const struct linked *linked;
	void *image = NULL;

	if (linker->sent || linker->complete || linker->failed)
		return false;
	(void)pthread_mutex_lock(&linked_lock);
	HASH_FIND(hh, all_linked, key, sizeof(linked->key), linked);
	if (linked && image_p) {
		image = malloc(linked->image.size + 1);
		if (image) {
			memcpy(image, linked->image.data, linked->image.size);
			*image_p = image;
			*size_p = linked->image.size;
		} else {
			linked = NULL;
		}
	}
	if (linked) {
		gpc_jit_log_fill(&linker->info, linked->info);
		gpc_jit_log_fill(&linker->error, linked->error);
	}
	(void)pthread_mutex_unlock(&linked_lock);
	return linked != NULL;
}

/* Stores a copy, which may have to be sent to the daemon later. Returns false if out of memory. */
static bool
input_store(struct gpc_object *object, const struct input *input)
{
	struct linker *linker = object->extra;
	struct input *stored = gp_scratch_alloc(&object->memory, 1, sizeof(*stored));
	uint8_t *copy = malloc(input->size + input->name.size + input->options.size + 1);

	if (!stored || !copy) {
		free(copy);
		return false;
	}
	if (!gp_scratch_adopt(&object->memory, copy))
		return false;
	*stored = *input;
	stored->data = memcpy(copy, input->data, input->size);
	copy += input->size;
	if (input->name.size)
		stored->name.data = memcpy(copy, input->name.data, input->name.size);
	copy += input->name.size;
	if (input->options.size)
		stored->options.data = memcpy(copy, input->options.data, input->options.size);
	*linker->last = stored;
	linker->last = &stored->next;
	return true;
}

static CUresult
input_start(const struct gpc_object *object, const struct input *input, struct gpc_request *request)
{
	const struct gp_args_gpLinkAdd args = { .linker = object->handle.id,
						.type = input->type,
						.name = input->name,
						.options = input->options };
	const struct iovec bulk = { input->data, input->size };

	return gpc_start_gpLinkAdd(object->context, &args, request, &bulk, 1);
}

/* replay->count is the number of requests started, even if a later one fails. */
static CUresult
replay_start_all(const struct gpc_object *object, struct replay *replay)
{
	const struct linker *linker = object->extra;
	const struct gp_args_gpLinkCreate create = { .linker = object->handle.id,
						     .options = linker->options };
	const struct gp_args_gpLinkComplete complete = { .linker = object->handle.id };
	CUresult result = gpc_start_gpLinkCreate(object->context, &create, &replay->requests[0]);

	replay->count = result == CUDA_SUCCESS;
	for (const struct input *input = linker->inputs; input && result == CUDA_SUCCESS;
	     input = input->next) {
		result = input_start(object, input, &replay->requests[replay->count]);
		replay->count += result == CUDA_SUCCESS;
	}
	if (result == CUDA_SUCCESS && linker->complete) {
		result = gpc_start_gpLinkComplete(object->context, &complete,
						  &replay->requests[replay->count]);
		replay->count += result == CUDA_SUCCESS;
	}
	return result;
}

/* Sends the daemon the parts of the linker that it does not know. Called before each request about
 * the linker; replay_finish() must follow the request. */
static CUresult
replay_start(const struct gpc_object *object, struct replay *replay)
{
	struct linker *linker = object->extra;
	size_t count = 2;

	*replay = (struct replay){ 0 };
	if (linker->sent)
		return CUDA_SUCCESS;
	for (const struct input *input = linker->inputs; input; input = input->next)
		count++;
	replay->requests = calloc(count, sizeof(*replay->requests));
	if (!replay->requests)
		return CUDA_ERROR_OUT_OF_MEMORY;
	linker->sent = true;
	return replay_start_all(object, replay);
}

static CUresult
replay_finish(struct replay *replay, CUresult result)
{
	CUresult all = CUDA_SUCCESS;

	for (size_t i = 0; i < replay->count; i++) {
		CUresult one = gpc_request_wait_own(&replay->requests[i]);

		free(replay->requests[i].reply);
		if (all == CUDA_SUCCESS)
			all = one;
	}
	free(replay->requests);
	return all == CUDA_SUCCESS ? result : all;
}

/* With options, since the daemon may refuse them. */
static CUresult
linker_create_and_wait(const struct gpc_object *object)
{
	const struct linker *linker = object->extra;
	struct replay replay;
	CUresult result = replay_start(object, &replay);

	result = replay_finish(&replay, result);
	if (result == CUDA_SUCCESS)
		linked_store(linker->key, (struct gp_bytes){ 0 }, (struct gp_bytes){ 0 },
			     (struct gp_bytes){ 0 });
	return result;
}

static CUresult
linker_init(struct gpc_object *object, const struct gpc_jit_options *jit)
{
	struct linker *linker = gp_scratch_alloc(&object->memory, 1, sizeof(*linker));
	CUresult result;

	if (!linker)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = gpc_jit_options_check_keys(jit);
	if (result == CUDA_SUCCESS)
		result = gpc_options_encode_CUjit_option(jit->count, jit->keys, jit->values,
							 &object->memory, &linker->options);
	if (result != CUDA_SUCCESS)
		return result;
	linker->last = &linker->inputs;
	key_init(linker, object->context);
	object->extra = linker;
	if (linker->options.size && !linked_find(linker, linker->key, NULL, NULL))
		result = linker_create_and_wait(object);
	if (result != CUDA_SUCCESS)
		return result;
	linker->info = gpc_jit_log_find(jit, false);
	linker->error = gpc_jit_log_find(jit, true);
	gpc_jit_log_fill(&linker->info, (struct gp_bytes){ 0 });
	gpc_jit_log_fill(&linker->error, (struct gp_bytes){ 0 });
	return CUDA_SUCCESS;
}

CUresult
gpc_cuLinkCreate_v2(unsigned int numOptions, CUjit_option *options, void **optionValues,
		    CUlinkState *stateOut)
{
	const struct gpc_jit_options jit = { options, optionValues, numOptions };
	struct gpc_context *context;
	struct gpc_object *object;
	CUresult result = gpc_enter(&context);

	if (result != CUDA_SUCCESS)
		return result;
	if (!stateOut)
		return CUDA_ERROR_INVALID_VALUE;
	result = gpc_object_create(GPC_KIND_LINKER, context, &object);
	if (result != CUDA_SUCCESS)
		return result;
	result = linker_init(object, &jit);
	if (result == CUDA_SUCCESS)
		*stateOut = object->handle.token;
	else
		gpc_object_destroy(object);
	return result;
}

static CUresult
input_add_and_wait(const struct gpc_object *object, const struct input *input,
		   const uint8_t key[GP_SHA256_SIZE])
{
	const struct gp_args_gpLinkAdd args = { .linker = object->handle.id,
						.type = input->type,
						.name = input->name,
						.options = input->options };
	const struct iovec bulk = { input->data, input->size };
	struct linker *linker = object->extra;
	struct gp_reply_gpLinkAdd reply;
	struct replay replay;
	void *raw = NULL;
	CUresult result;

	gpc_stats_wait_start(GP_CALL_gpLinkAdd);
	result = replay_start(object, &replay);
	if (result == CUDA_SUCCESS)
		result = gpc_wait_gpLinkAdd(object->context, &args, &reply, &bulk, 1, &raw);
	result = replay_finish(&replay, result);
	gpc_stats_wait_stop();
	if (raw) {
		gpc_jit_log_fill(&linker->info, reply.info);
		gpc_jit_log_fill(&linker->error, reply.error);
	}
	linker->failed |= result != CUDA_SUCCESS;
	if (!linker->failed) {
		memcpy(linker->key, key, sizeof(linker->key));
		linked_store(key, reply.info, reply.error, (struct gp_bytes){ 0 });
	}
	free(raw);
	return result;
}

static CUresult
input_add(struct gpc_object *object, CUjitInputType type, void *data, size_t size, const char *name,
	  const struct gpc_jit_options *jit)
{
	struct input input = { .type = (int32_t)type, .data = data, .size = size };
	struct linker *linker = object->extra;
	struct gp_scratch scratch = { 0 };
	uint8_t key[GP_SHA256_SIZE];
	CUresult result = gpc_jit_options_check_keys(jit);

	if (result == CUDA_SUCCESS)
		result = gpc_options_encode_CUjit_option(jit->count, jit->keys, jit->values,
							 &scratch, &input.options);
	if (name)
		input.name = (struct gp_bytes){ name, strnlen(name, 4096) };
	if (result == CUDA_SUCCESS) {
		key_add_input(key, linker, &input);
		if (linked_find(linker, key, NULL, NULL) && input_store(object, &input))
			memcpy(linker->key, key, sizeof(linker->key));
		else
			result = input_add_and_wait(object, &input, key);
	}
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
	return input_add(object, type, data, size, name, &jit);
}

/* Reads a whole file; the caller frees *data_p. */
static CUresult
file_read(int fd, void **data_p, size_t *size_p)
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
	result = file_read(fd, &data, &size);
	(void)close(fd);
	if (result == CUDA_SUCCESS)
		result = input_add(object, type, data, size + (type == CU_JIT_INPUT_PTX), path,
				   &jit);
	free(data);
	return result;
}

static CUresult
linker_complete_and_wait(struct gpc_object *object, const uint8_t key[GP_SHA256_SIZE],
			 void **image_p, size_t *size_p)
{
	const struct gp_args_gpLinkComplete args = { .linker = object->handle.id };
	struct gp_reply_gpLinkComplete reply;
	struct linker *linker = object->extra;
	struct replay replay;
	void *raw = NULL;
	CUresult result;

	gpc_stats_wait_start(GP_CALL_gpLinkComplete);
	result = replay_start(object, &replay);
	if (result == CUDA_SUCCESS)
		result = gpc_wait_gpLinkComplete(object->context, &args, &reply, &raw);
	result = replay_finish(&replay, result);
	gpc_stats_wait_stop();
	if (raw) {
		gpc_jit_log_fill(&linker->info, reply.info);
		gpc_jit_log_fill(&linker->error, reply.error);
	}
	linker->failed |= result != CUDA_SUCCESS;
	if (result != CUDA_SUCCESS) {
		free(raw);
		return result;
	}
	if (!linker->failed)
		linked_store(key, reply.info, reply.error, reply.image);
	/* Inputs added after this do not extend the key. */
	linker->failed = true;
	if (!gp_scratch_adopt(&object->memory, raw))
		return CUDA_ERROR_OUT_OF_MEMORY;
	*image_p = (void *)(uintptr_t)reply.image.data;
	*size_p = reply.image.size;
	return CUDA_SUCCESS;
}

CUresult
gpc_cuLinkComplete(CUlinkState state, void **cubinOut, size_t *sizeOut)
{
	uint8_t key[GP_SHA256_SIZE];
	struct gpc_object *object;
	struct linker *linker;
	void *image;
	size_t size;
	CUresult result = gpc_enter_kind(GPC_KIND_LINKER, state, &object);

	if (result != CUDA_SUCCESS)
		return result;
	if (!cubinOut)
		return CUDA_ERROR_INVALID_VALUE;
	linker = object->extra;
	key_complete(key, linker);
	if (linked_find(linker, key, &image, &size)) {
		/* The image belongs to the linker until it is destroyed. */
		if (!gp_scratch_adopt(&object->memory, image))
			return CUDA_ERROR_OUT_OF_MEMORY;
		*cubinOut = image;
		linker->complete = true;
	} else {
		result = linker_complete_and_wait(object, key, cubinOut, &size);
	}
	if (result == CUDA_SUCCESS && sizeOut)
		*sizeOut = size;
	return result;
}

CUresult
gpc_cuLinkDestroy(CUlinkState state)
{
	struct gpc_object *object;
	const struct linker *linker;
	struct gp_args_gpLinkDrop drop;
	struct gp_args_cuLinkDestroy args;
	CUresult result = gpc_enter_kind(GPC_KIND_LINKER, state, &object);

	if (result != CUDA_SUCCESS)
		return result;
	if (!gpc_handle_claim(GPC_KIND_LINKER, state))
		return CUDA_ERROR_INVALID_HANDLE;
	linker = object->extra;
	drop.linker = args.state = object->handle.id;
	if (linker->sent)
		result = gpc_post_gpLinkDrop(object->context, &drop);
	/* An older daemon does not know the call. */
	if (result == CUDA_ERROR_NOT_SUPPORTED)
		result = gpc_wait_cuLinkDestroy(object->context, &args);
	if (result == CUDA_SUCCESS)
		gpc_object_destroy(object);
	else
		gpc_handle_unclaim(&object->handle);
	return result;
}
