/* SPDX-License-Identifier: Apache-2.0 */
#include "client/context/context.h"

#include "base/lock.h"
#include "client/base/log_history.h"
#include "client/context/context_storage.h"
#include "client/context/device.h"
#include "client/context/lifecycle.h"
#include "client/pages/pages.h"
#include "client/session/host_queue.h"
#include "client/session/session.h"
#include "gpc_calls.h"

#include <stdlib.h>
#include <string.h>

#define INITIAL_EXEC __attribute__((tls_model("initial-exec")))
#define STACK_GROWTH 16

atomic_int gpc_lifecycle = CUDA_ERROR_NOT_INITIALIZED;

atomic_uint gpc_contexts_active;

__thread bool gpc_per_thread_default INITIAL_EXEC;

/* The contexts below the current one. */
struct stack {
	size_t count, capacity;
	struct gpc_context *below[];
};

__thread struct gpc_context *gpc_current_context INITIAL_EXEC;
static __thread struct stack *stack INITIAL_EXEC;
static __thread bool thread_is_exiting INITIAL_EXEC; /* the destructors of its keys are running */

static pthread_key_t stack_key;
static pthread_once_t stack_once = PTHREAD_ONCE_INIT;

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
/* All contexts ever created: a thread's current context may be one that has been destroyed. */
static struct gpc_context *contexts GP_GUARDED_BY(list_lock);
static uint64_t last_number GP_GUARDED_BY(list_lock);

static const struct gpc_context_part *parts;
static size_t part_count;

struct gpc_context *
gpc_context_create(struct gpc_device *device, unsigned int flags, bool primary)
{
	struct gpc_context *context = calloc(1, sizeof(*context));

	if (!context)
		return NULL;
	if (gpc_handle_add(GPC_KIND_CONTEXT, &context->handle) < 0) {
		free(context);
		return NULL;
	}
	context->device = device;
	context->scope.session = device->session;
	context->flags = flags;
	context->primary = primary;
	context->api_version = GPC_API_VERSION;
	(void)pthread_mutex_init(&context->lock, NULL);

	(void)pthread_mutex_lock(&list_lock);
	context->number = ++last_number;
	context->next = contexts;
	contexts = context;
	(void)pthread_mutex_unlock(&list_lock);
	return context;
}

void
gpc_contexts_drop_all(void) GP_LOCK_UNCHECKED
{
	gpc_current_context = NULL;
	if (stack)
		stack->count = 0;
	while (contexts) {
		struct gpc_context *context = contexts;

		contexts = context->next;
		if (context->primary || !context->destroyed)
			gpc_handle_remove(&context->handle);
		(void)pthread_mutex_destroy(&context->lock);
		free(context);
	}
}

static void
context_set_defaults(struct gpc_context *context)
{
	const struct gpc_device *device = context->device;

	context->cache_config = CU_FUNC_CACHE_PREFER_NONE;
	context->shared_config = CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE;
	for (int i = 0; i < 16; i++)
		context->limits[i] = i < device->limit_count ? device->limits[i] : 0;
}

void
gpc_context_set_parts(const struct gpc_context_part *list, size_t count)
{
	parts = list;
	part_count = count;
}

static CUresult
parts_prepare(struct gpc_context *context, struct gp_args_gpContextCreate *args)
{
	CUresult result = CUDA_SUCCESS;

	for (size_t i = 0; i < part_count && result == CUDA_SUCCESS; i++) {
		if (parts[i].prepare)
			result = parts[i].prepare(context, args);
	}
	return result;
}

static void
parts_report_created(struct gpc_context *context, const struct gp_args_gpContextCreate *args,
		     bool success)
{
	for (size_t i = 0; i < part_count; i++) {
		if (parts[i].created)
			parts[i].created(context, args, success);
	}
}

/* Posted: the initial memory of the heap already belongs to the session. */
static CUresult
context_create_remote(struct gpc_context *context, const struct gp_args_gpContextCreate *args)
{
	const struct gp_args_gpContextMake make = {
		.context = args->context,
		.device = args->device,
		.flags = args->flags,
		.legacy = args->legacy,
	};
	const struct gp_args_gpMemoryUse use = {
		.address = args->heap,
		.size = args->heap_size,
		.device = args->device,
	};
	CUresult result = gpc_post_gpContextMake(context, &make);

	if (result == CUDA_SUCCESS && args->heap_size != 0)
		result = gpc_post_gpMemoryUse(context, &use);
	return result;
}

static CUresult
context_activate_locked(struct gpc_context *context)
{
	const struct gpc_session *session = context->scope.session;
	struct gp_args_gpContextCreate args = {
		.context = context->handle.id,
		.device = context->device->remote,
		.flags = context->flags,
	};
	CUresult result;

	if (context->destroyed)
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	context_set_defaults(context);
	result = parts_prepare(context, &args);
	/* A daemon without a context on the device may fail to create it. An older daemon maps the
	 * heap together with the context, and may have no memory for it. */
	if (result == CUDA_SUCCESS)
		result = gpc_facts_have_call(gpc_session_facts(session), GP_CALL_gpContextMake) &&
					 !atomic_load(&context->device->no_context)
				 ? context_create_remote(context, &args)
				 : gpc_wait_gpContextCreate(context, &args);
	parts_report_created(context, &args, result == CUDA_SUCCESS);
	if (result == CUDA_SUCCESS) {
		atomic_store(&context->device->no_context, false);
		atomic_fetch_add(&gpc_contexts_active, 1);
		__atomic_store_n(&context->scope.context, context->handle.id, __ATOMIC_RELEASE);
	}
	return result;
}

CUresult
gpc_context_activate(struct gpc_context *context)
{
	CUresult result = CUDA_SUCCESS;

	if (gpc_context_is_active(context))
		return CUDA_SUCCESS;
	(void)pthread_mutex_lock(&context->lock);
	if (!gpc_context_is_active(context))
		result = context_activate_locked(context);
	(void)pthread_mutex_unlock(&context->lock);
	return result;
}

void
gpc_context_reset(struct gpc_context *context)
{
	struct gp_args_gpContextDestroy args = { .context = context->handle.id };
	bool was_active;

	/* The runtimes release their state while the context still works. */
	gpc_context_storage_reset(context->handle.token);
	for (size_t i = 0; i < part_count; i++) {
		if (parts[i].leave)
			parts[i].leave(context);
	}

	(void)pthread_mutex_lock(&context->lock);
	for (size_t i = 0; i < part_count; i++) {
		if (parts[i].unload)
			parts[i].unload(context);
	}
	was_active = gpc_context_is_active(context);
	context->destroyed = true;
	__atomic_store_n(&context->scope.context, 0, __ATOMIC_RELEASE);
	/* In a session that has ended there is nothing to destroy. */
	if (was_active) {
		atomic_fetch_sub(&gpc_contexts_active, 1);
		(void)gpc_post_gpContextDestroy(context, &args);
	}
	for (size_t i = 0; i < part_count && was_active; i++) {
		if (parts[i].drop_context)
			parts[i].drop_context(context);
	}
	(void)pthread_mutex_unlock(&context->lock);
}

CUresult
gpc_enter_local(void)
{
	return gpc_lifecycle_check();
}

CUresult
gpc_enter_initialized(void)
{
	CUresult result = gpc_lifecycle_check();

	if (__builtin_expect(gpc_in_host_function, 0))
		return CUDA_ERROR_NOT_PERMITTED;
	if (__builtin_expect(result != CUDA_SUCCESS, 0))
		return result;
	/* With several daemons, the error of one session does not affect devices of another. */
	return gpc_session_status(gpc_current_context ? gpc_current_context->scope.session
						      : gpc_session_get());
}

CUresult
gpc_enter(struct gpc_context **context_p)
{
	CUresult result = gpc_enter_initialized();
	struct gpc_context *context = gpc_current_context;

	if (__builtin_expect(result != CUDA_SUCCESS, 0))
		return result;
	if (__builtin_expect(!context, 0))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (__builtin_expect(context->parent != NULL, 0))
		context = context->parent;
	if (gpc_pages_any())
		gpc_page_faults_reinstall();
	if (__builtin_expect(!gpc_context_is_active(context), 0)) {
		result = gpc_context_activate(context);
		if (result != CUDA_SUCCESS)
			return result;
	}
	*context_p = context;
	return CUDA_SUCCESS;
}

CUresult
gpc_context_require(void)
{
	CUresult result = gpc_enter_initialized();

	return result == CUDA_SUCCESS && !gpc_current_context ? CUDA_ERROR_INVALID_CONTEXT : result;
}

CUresult
gpc_context_require_v1(CUcontext token)
{
	CUresult result = gpc_enter_local();
	const struct gpc_context *context = gpc_handle_from_token(GPC_KIND_CONTEXT, token);

	if (result != CUDA_SUCCESS)
		return result;
	return context && context->api_version < GPC_API_VERSION ? CUDA_SUCCESS
								 : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult
gpc_context_lookup(CUcontext token, struct gpc_context **context_p)
{
	if (!token) {
		if (!gpc_current_context)
			return CUDA_ERROR_INVALID_CONTEXT;
		if (!gpc_current_context->primary &&
		    __atomic_load_n(&gpc_current_context->destroyed, __ATOMIC_RELAXED))
			return CUDA_ERROR_CONTEXT_IS_DESTROYED;
		*context_p = gpc_current_context;
		return CUDA_SUCCESS;
	}
	*context_p = gpc_handle_from_token(GPC_KIND_CONTEXT, token);
	return *context_p ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult
gpc_context_enter(CUcontext token, struct gpc_context **context_p)
{
	CUresult result = gpc_enter_local();

	return result == CUDA_SUCCESS ? gpc_context_lookup(token, context_p) : result;
}

CUresult
gpc_context_enter_current(struct gpc_context **context_p)
{
	return gpc_context_enter(NULL, context_p);
}

/* The program's own key destructors may run after this one and use contexts. So the first round
 * leaves the stack as it is; a push after it has been freed creates a new one. */
static void
thread_exited(void *arg)
{
	if (!thread_is_exiting) {
		thread_is_exiting = true;
		(void)pthread_setspecific(stack_key, arg);
		return;
	}
	stack = NULL;
	free(arg);
}

static void
make_stack_key(void)
{
	(void)pthread_key_create(&stack_key, thread_exited);
}

static CUresult
stack_push_current(void)
{
	if (!stack || stack->count == stack->capacity) {
		size_t capacity = stack ? stack->capacity + STACK_GROWTH : STACK_GROWTH;
		struct stack *larger =
			realloc(stack, sizeof(*larger) + capacity * sizeof(larger->below[0]));

		if (!larger)
			return CUDA_ERROR_OUT_OF_MEMORY;
		larger->count = stack ? larger->count : 0;
		larger->capacity = capacity;
		stack = larger;
		/* The key's destructor frees it when the thread exits. */
		(void)pthread_once(&stack_once, make_stack_key);
		(void)pthread_setspecific(stack_key, stack);
	}
	stack->below[stack->count++] = gpc_current_context;
	return CUDA_SUCCESS;
}

CUresult
gpc_context_push(struct gpc_context *context)
{
	CUresult result = gpc_current_context ? stack_push_current() : CUDA_SUCCESS;

	if (result == CUDA_SUCCESS)
		gpc_current_context = context;
	return result;
}

struct gpc_context *
gpc_context_pop(void)
{
	struct gpc_context *top = gpc_current_context;

	gpc_current_context = stack && stack->count > 0 ? stack->below[--stack->count] : NULL;
	return top;
}

CUresult
gpc_context_set_current(struct gpc_context *context)
{
	if (context)
		gpc_current_context = context;
	else
		(void)gpc_context_pop();
	return CUDA_SUCCESS;
}
