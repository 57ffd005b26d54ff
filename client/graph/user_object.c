/* SPDX-License-Identifier: Apache-2.0 */
#include "client/graph/user_object.h"

#include "client/context/context.h"
#include "client/graph/graph.h"
#include "client/guard/guard.h"
#include "client/session/host_queue.h"
#include "gpc_calls.h"

#include <stdlib.h>
#include <utlist.h>

struct gpc_user_object {
	struct gpc_handle handle;
	unsigned int references;
	CUhostFn destroy;
	void *data;
};

static struct gpc_user_destructor *destructors;

void
gpc_user_destructors_add(struct gpc_user_destructor *ended)
{
	ended->next = destructors;
	destructors = ended;
}

static void
user_object_unref(struct gpc_user_object *object, unsigned int count) GP_LOCKED(gpc_graphs_lock)
{
	struct gpc_user_destructor *ended;

	object->references -= count;
	if (object->references > 0)
		return;
	ended = malloc(sizeof(*ended));
	if (ended) {
		*ended = (struct gpc_user_destructor){ .destroy = object->destroy,
						       .data = object->data,
						       .owned = true };
		gpc_user_destructors_add(ended);
	}
	gpc_handle_remove(&object->handle);
}

struct gpc_user_destructor *
gpc_user_destructors_pop_all(void)
{
	struct gpc_user_destructor *list = destructors;

	destructors = NULL;
	return list;
}

void
gpc_user_destructors_run(struct gpc_user_destructor *list)
{
	while (list) {
		struct gpc_user_destructor *ended = list;
		bool owned = ended->owned;
		struct gpc_guard before = gpc_guard_clear();

		list = ended->next;
		ended->destroy(ended->data);
		gpc_guard_set(before);
		if (owned)
			free(ended);
	}
}

static CUresult
user_object_refs_add(struct gpc_user_object_ref **users_p, struct gpc_user_object *object,
		     unsigned int count)
{
	struct gpc_user_object_ref *user = *users_p;

	while (user && user->object != object)
		user = user->next;
	if (!user) {
		user = calloc(1, sizeof(*user));
		if (!user)
			return CUDA_ERROR_OUT_OF_MEMORY;
		*user = (struct gpc_user_object_ref){ *users_p, object, 0 };
		*users_p = user;
	}
	user->count += count;
	return CUDA_SUCCESS;
}

CUresult
gpc_user_object_refs_clone(const struct gpc_user_object_ref *users,
			   struct gpc_user_object_ref **copy_p)
{
	CUresult result = CUDA_SUCCESS;

	for (; users && result == CUDA_SUCCESS; users = users->next) {
		result = user_object_refs_add(copy_p, users->object, users->count);
		if (result == CUDA_SUCCESS)
			users->object->references += users->count;
	}
	return result;
}

void
gpc_user_object_refs_release(struct gpc_user_object_ref **users_p)
{
	struct gpc_user_object_ref *user;

	while ((user = *users_p)) {
		*users_p = user->next;
		user_object_unref(user->object, user->count);
		free(user);
	}
}

static CUresult
graphs_begin_object(CUuserObject token, struct gpc_user_object **object_p) GP_LOCKS(gpc_graphs_lock)
{
	CUresult result = gpc_graphs_begin();

	*object_p = gpc_handle_from_token(GPC_KIND_USER_OBJECT, token);
	return result == CUDA_SUCCESS && !*object_p ? CUDA_ERROR_INVALID_VALUE : result;
}

CUresult
gpc_cuUserObjectCreate(CUuserObject *object_out, void *ptr, CUhostFn destroy,
		       unsigned int initialRefcount, unsigned int flags)
{
	struct gpc_user_object *object = NULL;
	CUresult result = gpc_graphs_begin();

	/* The flag is required: the destructor is not synchronized with. */
	if (result == CUDA_SUCCESS && (!object_out || !destroy || initialRefcount == 0 ||
				       flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC))
		result = CUDA_ERROR_INVALID_VALUE;
	if (result != CUDA_SUCCESS)
		return gpc_graphs_end(result);
	object = gpc_handle_new(GPC_KIND_USER_OBJECT, sizeof(*object));
	if (!object)
		return gpc_graphs_end(CUDA_ERROR_OUT_OF_MEMORY);
	object->references = initialRefcount;
	object->destroy = destroy;
	object->data = ptr;
	*object_out = object->handle.token;
	return gpc_graphs_end(CUDA_SUCCESS);
}

CUresult
gpc_cuUserObjectRetain(CUuserObject object, unsigned int count)
{
	struct gpc_user_object *found;
	CUresult result = graphs_begin_object(object, &found);

	if (result == CUDA_SUCCESS && (count == 0 || found->references + count < count))
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		found->references += count;
	return gpc_graphs_end(result);
}

CUresult
gpc_cuUserObjectRelease(CUuserObject object, unsigned int count)
{
	struct gpc_user_object *found;
	CUresult result = graphs_begin_object(object, &found);

	if (result == CUDA_SUCCESS && (count == 0 || count > found->references))
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		user_object_unref(found, count);
	return gpc_graphs_end(result);
}

CUresult
gpc_cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned int count,
			    unsigned int flags)
{
	struct gpc_user_object *found;
	struct gpc_graph *owner_graph;
	CUresult result = graphs_begin_object(object, &found);

	if (result == CUDA_SUCCESS)
		result = gpc_graph_lookup(graph, &owner_graph);
	if (result == CUDA_SUCCESS &&
	    (count == 0 || (flags & ~(unsigned int)CU_GRAPH_USER_OBJECT_MOVE)))
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		result = user_object_refs_add(&owner_graph->users, found, count);
	if (result == CUDA_SUCCESS && !(flags & CU_GRAPH_USER_OBJECT_MOVE))
		found->references += count;
	return gpc_graphs_end(result);
}

CUresult
gpc_cuGraphReleaseUserObject(CUgraph graph, CUuserObject object, unsigned int count)
{
	struct gpc_user_object *found;
	struct gpc_user_object_ref *user = NULL;
	struct gpc_graph *owner_graph;
	CUresult result = graphs_begin_object(object, &found);

	if (result == CUDA_SUCCESS)
		result = gpc_graph_lookup(graph, &owner_graph);
	if (result == CUDA_SUCCESS) {
		for (user = owner_graph->users; user && user->object != found; user = user->next)
			;
		if (!user || count == 0 || count > user->count)
			result = CUDA_ERROR_INVALID_VALUE;
	}
	if (result == CUDA_SUCCESS) {
		struct gpc_user_object_ref **at = &owner_graph->users;

		user->count -= count;
		user_object_unref(found, count);
		while (*at != user)
			at = &(*at)->next;
		if (user->count == 0) {
			*at = user->next;
			free(user);
		}
	}
	return gpc_graphs_end(result);
}

/* Deferred destruction of an executable graph's copy while launches may still use its objects. */
struct deferred_destroy {
	struct gpc_request fence;
	struct gpc_graph *graph;
	const struct gpc_scope *scope;
};

bool
gpc_graph_has_user_objects(const struct gpc_graph *graph)
{
	const struct gpc_node *node;
	bool has = graph->users != NULL;
	size_t count;

	DL_FOREACH(graph->nodes, node)
	{
		struct gpc_graph *const *inner = gpc_node_params_graphs(&node->params, &count);

		for (size_t i = 0; i < count; i++)
			has = has || gpc_graph_has_user_objects(inner[i]);
	}
	return has;
}

static void
deferred_destroy_run(void *data)
{
	struct gpc_user_destructor *ended;
	struct deferred_destroy *deferred_destroy = data;

	pthread_mutex_lock(&gpc_graphs_lock);
	gpc_graph_destroy(deferred_destroy->graph);
	ended = gpc_user_destructors_pop_all();
	pthread_mutex_unlock(&gpc_graphs_lock);
	gpc_user_destructors_run(ended);
	free(deferred_destroy);
}

/* Called by the reader of the connection, which may hold gpc_graphs_lock; so the graph is destroyed
 * on another thread. */
static void
deferred_destroy_start(struct gpc_request *fence)
{
	struct deferred_destroy *deferred_destroy = fence->arg;

	free(fence->reply);
	if (gpc_host_queue_run(deferred_destroy->scope, deferred_destroy_run, deferred_destroy) !=
	    CUDA_SUCCESS)
		free(deferred_destroy);
}

void
gpc_graph_destroy_later(struct gpc_graph *graph, struct gpc_context *context)
{
	const struct gp_args_gpFence args = { 0 };
	struct deferred_destroy *deferred_destroy = malloc(sizeof(*deferred_destroy));

	if (!deferred_destroy)
		return;
	*deferred_destroy = (struct deferred_destroy){ .graph = graph, .scope = &context->scope };
	deferred_destroy->fence.done = deferred_destroy_start;
	deferred_destroy->fence.arg = deferred_destroy;
	if (gpc_start_gpFence(context, &args, &deferred_destroy->fence) != CUDA_SUCCESS)
		free(deferred_destroy);
}
