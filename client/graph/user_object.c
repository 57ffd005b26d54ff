/* SPDX-License-Identifier: Apache-2.0 */
#include "client/graph/user_object.h"

#include "client/context/context.h"
#include "client/graph/graph.h"
#include "client/guard/guard.h"
#include "client/wire/host_queue.h"
#include "gpc_calls.h"

#include <stdlib.h>
#include <utlist.h>

struct gpc_user_object {
	struct gpc_handle handle;
	unsigned int references;
	CUhostFn destroy;
	void *data;
};

static struct gpc_users_ended *ended_list;

void
gpc_users_add_ended(struct gpc_users_ended *ended)
{
	ended->next = ended_list;
	ended_list = ended;
}

static void
release(struct gpc_user_object *object, unsigned int count) GP_LOCKED(gpc_graphs_lock)
{
	struct gpc_users_ended *ended;

	object->references -= count;
	if (object->references > 0)
		return;
	ended = malloc(sizeof(*ended));
	if (ended) {
		*ended = (struct gpc_users_ended){ .destroy = object->destroy,
						   .data = object->data,
						   .owned = true };
		gpc_users_add_ended(ended);
	}
	gpc_handle_remove(&object->handle);
}

struct gpc_users_ended *
gpc_users_take_ended(void)
{
	struct gpc_users_ended *list = ended_list;

	ended_list = NULL;
	return list;
}

void
gpc_users_end(struct gpc_users_ended *list)
{
	while (list) {
		struct gpc_users_ended *ended = list;
		bool owned = ended->owned;
		struct gpc_guard before = gpc_guard_pause();

		list = ended->next;
		ended->destroy(ended->data);
		gpc_guard_resume(before);
		if (owned)
			free(ended);
	}
}

static CUresult
hold(struct gpc_user **users_p, struct gpc_user_object *object, unsigned int count)
{
	struct gpc_user *user = *users_p;

	while (user && user->object != object)
		user = user->next;
	if (!user) {
		user = calloc(1, sizeof(*user));
		if (!user)
			return CUDA_ERROR_OUT_OF_MEMORY;
		*user = (struct gpc_user){ *users_p, object, 0 };
		*users_p = user;
	}
	user->count += count;
	return CUDA_SUCCESS;
}

CUresult
gpc_users_share(const struct gpc_user *users, struct gpc_user **copy_p)
{
	CUresult result = CUDA_SUCCESS;

	for (; users && result == CUDA_SUCCESS; users = users->next) {
		result = hold(copy_p, users->object, users->count);
		if (result == CUDA_SUCCESS)
			users->object->references += users->count;
	}
	return result;
}

void
gpc_users_release(struct gpc_user **users_p)
{
	struct gpc_user *user;

	while ((user = *users_p)) {
		*users_p = user->next;
		release(user->object, user->count);
		free(user);
	}
}

static CUresult
begin_object(CUuserObject token, struct gpc_user_object **object_p) GP_LOCKS(gpc_graphs_lock)
{
	CUresult result = gpc_graphs_begin();

	*object_p = gpc_handle_get(GPC_KIND_USER_OBJECT, token);
	return result == CUDA_SUCCESS && !*object_p ? CUDA_ERROR_INVALID_VALUE : result;
}

CUresult
gpc_cuUserObjectCreate(CUuserObject *object_out, void *ptr, CUhostFn destroy,
		       unsigned int initialRefcount, unsigned int flags)
{
	struct gpc_user_object *object = NULL;
	CUresult result = gpc_graphs_begin();

	/* The flag is required: nobody waits for the destructor. */
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
	CUresult result = begin_object(object, &found);

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
	CUresult result = begin_object(object, &found);

	if (result == CUDA_SUCCESS && (count == 0 || count > found->references))
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		release(found, count);
	return gpc_graphs_end(result);
}

CUresult
gpc_cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned int count,
			    unsigned int flags)
{
	struct gpc_user_object *found;
	struct gpc_graph *holder;
	CUresult result = begin_object(object, &found);

	if (result == CUDA_SUCCESS)
		result = gpc_graph_lookup(graph, &holder);
	if (result == CUDA_SUCCESS &&
	    (count == 0 || (flags & ~(unsigned int)CU_GRAPH_USER_OBJECT_MOVE)))
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		result = hold(&holder->users, found, count);
	if (result == CUDA_SUCCESS && !(flags & CU_GRAPH_USER_OBJECT_MOVE))
		found->references += count;
	return gpc_graphs_end(result);
}

CUresult
gpc_cuGraphReleaseUserObject(CUgraph graph, CUuserObject object, unsigned int count)
{
	struct gpc_user_object *found;
	struct gpc_user *user = NULL;
	struct gpc_graph *holder;
	CUresult result = begin_object(object, &found);

	if (result == CUDA_SUCCESS)
		result = gpc_graph_lookup(graph, &holder);
	if (result == CUDA_SUCCESS) {
		for (user = holder->users; user && user->object != found; user = user->next)
			;
		if (!user || count == 0 || count > user->count)
			result = CUDA_ERROR_INVALID_VALUE;
	}
	if (result == CUDA_SUCCESS) {
		struct gpc_user **at = &holder->users;

		user->count -= count;
		release(found, count);
		while (*at != user)
			at = &(*at)->next;
		if (user->count == 0) {
			*at = user->next;
			free(user);
		}
	}
	return gpc_graphs_end(result);
}

/* The end of what an executable held while launches may still use it. */
struct later {
	struct gpc_request fence;
	struct gpc_graph *graph;
	const struct gpc_scope *scope;
};

bool
gpc_graph_has_users(const struct gpc_graph *graph)
{
	const struct gpc_node *node;
	bool has = graph->users != NULL;
	size_t count;

	DL_FOREACH(graph->nodes, node)
	{
		struct gpc_graph *const *inner = gpc_node_params_graphs(&node->params, &count);

		for (size_t i = 0; i < count; i++)
			has = has || gpc_graph_has_users(inner[i]);
	}
	return has;
}

static void
destroy(void *data)
{
	struct gpc_users_ended *ended;
	struct later *later = data;

	pthread_mutex_lock(&gpc_graphs_lock);
	gpc_graph_destroy(later->graph);
	ended = gpc_users_take_ended();
	pthread_mutex_unlock(&gpc_graphs_lock);
	gpc_users_end(ended);
	free(later);
}

/* By who reads the connection, and may hold any lock of graphs meanwhile. */
static void
work_is_done(struct gpc_request *fence)
{
	struct later *later = fence->arg;

	free(fence->reply);
	if (gpc_host_queue_run(later->scope, destroy, later) != CUDA_SUCCESS)
		free(later);
}

void
gpc_graph_destroy_later(struct gpc_graph *graph, struct gpc_context *context)
{
	const struct gp_args_gpFence args = { 0 };
	struct later *later = malloc(sizeof(*later));

	if (!later)
		return;
	*later = (struct later){ .graph = graph, .scope = &context->scope };
	later->fence.done = work_is_done;
	later->fence.arg = later;
	if (gpc_start_gpFence(context, &args, &later->fence) != CUDA_SUCCESS)
		free(later);
}
