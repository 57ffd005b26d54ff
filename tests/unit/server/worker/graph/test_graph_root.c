/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs in one root graph, with a driver that counts handles for each graph, and executables until
 * the stream that they ran in is queried. */
#include "gpd_calls.h"
#include "protocol/graph_plan.h"
#include "server/worker/device/driver.h"
#include "server/worker/graph/graph_exec.h"
#include "server/worker/graph/graph_root.h"
#include "tests/test.h"
#include "tests/unit/server/fake_session.h"

#include <limits.h>
#include <stdlib.h>

#define PLAN 4
#define ROOT 8
#define STREAMS 2 /* of the session */

static struct fake_session fake;
static CUgraph made_in, added_to; /* the last ones */
static uint64_t last_handle;
static int refusals; /* of executables; each question takes one */
static CUresult answer;
static int instantiated, asked;

static CUresult
handle_create(CUgraphConditionalHandle *handle, CUgraph graph, CUcontext ctx, unsigned int value,
	      unsigned int flags)
{
	static CUgraph before;

	last_handle = graph == before ? last_handle + 1 : 1;
	before = graph;
	*handle = last_handle;
	return CUDA_SUCCESS;
}

static CUresult
add_node(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
	 const CUgraphEdgeData *data, size_t count, CUgraphNodeParams *params)
{
	static CUgraph body = (CUgraph)&body;

	params->conditional.phGraph_out = &body;
	*node = (CUgraphNode)&body;
	added_to = graph;
	return CUDA_SUCCESS;
}

static CUresult
get_nodes(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
	*count = 0;
	return CUDA_SUCCESS;
}

static CUresult
instantiate(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
	instantiated++;
	if (refusals > 0)
		return answer;
	made_in = graph;
	*exec = (CUgraphExec)&made_in;
	return CUDA_SUCCESS;
}

static CUresult
exec_destroy(CUgraphExec exec)
{
	return CUDA_SUCCESS;
}

static CUresult
stream_query(CUstream stream)
{
	asked++;
	refusals -= refusals > 0;
	return CUDA_SUCCESS;
}

static int
setup(void **state)
{
	fake_session_create(&fake);
	gpd_driver.cuGraphConditionalHandleCreate = handle_create;
	gpd_driver.cuGraphAddNode_v2 = add_node;
	gpd_driver.cuGraphGetNodes = get_nodes;
	gpd_driver.cuGraphInstantiateWithFlags = instantiate;
	gpd_driver.cuGraphExecDestroy = exec_destroy;
	gpd_driver.cuStreamQuery = stream_query;
	fake.session.streams->list = &fake.stream;
	fake.stream.next = &fake.other;
	fake.session.handles.memory.ledger = fake.ledger;
	fake.session.handles.memory.entry = fake.session.account.entry;
	fake.ledger->host_max = UINT64_MAX;
	refusals = instantiated = asked = 0;
	answer = CUDA_ERROR_NOT_SUPPORTED;
	return 0;
}

static int
teardown(void **state)
{
	fake_session_run_markers(&fake, -1);
	gpd_graph_destroy_all(&fake.session);
	gpd_graph_root_destroy_context(&fake.session, NULL);
	assert_int_equal(fake_driver_graphs, 0);
	fake_session_destroy(&fake);
	return 0;
}

/* A root with one handle. */
static uint64_t
make_root(uint32_t name)
{
	struct gp_reply_gpGraphHandle reply = { 0 };

	assert_int_equal(
		gpd_gpGraphRoot(&fake.session, &(struct gp_args_gpGraphRoot){ FAKE_CONTEXT, name }),
		CUDA_SUCCESS);
	assert_int_equal(gpd_gpGraphHandle(&fake.session,
					   &(struct gp_args_gpGraphHandle){ name, 1, 1 }, &reply),
			 CUDA_SUCCESS);
	return reply.handle;
}

/* Of one condition with an empty body. */
static CUresult
make(uint32_t name, uint32_t root, uint64_t handle)
{
	const struct gp_graph_condition condition = {
		.handle = handle, .type = CU_GRAPH_COND_TYPE_IF, .count = 1, .root = root
	};
	const struct gp_graph_writer body = { 0 };
	struct gp_graph_writer writer = { 0 };
	CUresult result;

	assert_true(gp_graph_write_condition(&writer, NULL, 0, &condition, &body));
	fake.bulk = writer.memory;
	fake.session.current.bulk_left = writer.size;
	result =
		gpd_gpGraphMake(&fake.session, &(struct gp_args_gpGraphMake){ FAKE_CONTEXT, name });
	free(writer.memory);
	return result;
}

static void
drop(uint32_t name)
{
	assert_int_equal(gpd_gpGraphDrop(&fake.session, &(struct gp_args_gpGraphDrop){ name }),
			 CUDA_SUCCESS);
	fake_session_run_markers(&fake, -1);
}

static CUgraph
graph_of(uint32_t root)
{
	return gpd_graph_root_get(&fake.session, root)->driver;
}

#define TEST(test) UNIT_TEST_WITH(test, setup, teardown)

TEST(roots_with_the_same_handle_are_not_mixed_up)
{
	uint64_t first = make_root(ROOT), second = make_root(ROOT + 1);

	assert_int_equal(first, second);
	assert_int_equal(make(PLAN, ROOT + 1, second), CUDA_SUCCESS);
	assert_ptr_equal(added_to, graph_of(ROOT + 1));
	assert_ptr_equal(made_in, graph_of(ROOT + 1));
	assert_int_equal(make(PLAN + 2, ROOT, first + 1), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(make(PLAN + 1, ROOT, first), CUDA_SUCCESS);
	assert_ptr_equal(made_in, graph_of(ROOT));
	assert_int_equal(make(PLAN + 2, ROOT, first), CUDA_ERROR_NOT_SUPPORTED);
	assert_int_equal(make(PLAN + 2, ROOT + 2, first), CUDA_ERROR_INVALID_VALUE);
}

TEST(a_driver_that_still_counts_the_one_before_is_asked_again)
{
	uint64_t handle = make_root(ROOT);

	assert_int_equal(make(PLAN, ROOT, handle), CUDA_SUCCESS);
	assert_int_equal(asked, 0);
	drop(PLAN);
	refusals = 5 * STREAMS;
	instantiated = 0;
	assert_int_equal(make(PLAN, ROOT, handle), CUDA_SUCCESS);
	assert_int_equal(instantiated, 5);
	/* Other errors are not retried. */
	drop(PLAN);
	answer = CUDA_ERROR_INVALID_VALUE;
	refusals = 5 * STREAMS;
	instantiated = 0;
	assert_int_equal(make(PLAN, ROOT, handle), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(instantiated, 1);
}

TEST(a_driver_that_refuses_for_good_is_believed)
{
	uint64_t handle = make_root(ROOT);

	refusals = INT_MAX;
	assert_int_equal(make(PLAN, ROOT, handle), CUDA_ERROR_NOT_SUPPORTED);
	assert_int_equal(instantiated, 1);
	refusals = 0;
	assert_int_equal(make(PLAN, ROOT, handle), CUDA_SUCCESS);
	drop(PLAN);
	refusals = INT_MAX;
	assert_int_equal(make(PLAN, ROOT, handle), CUDA_ERROR_NOT_SUPPORTED);
	refusals = 0;
	assert_int_equal(make(PLAN, ROOT, handle), CUDA_SUCCESS);
}

UNIT_TEST_MAIN(NULL, NULL)
