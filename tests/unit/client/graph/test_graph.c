/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs: nodes, edges, queries, clones, and rejected calls, in the client without calls to the
 * daemon. */
#include "client/context/lifecycle.h"
#include "client/graph/graph.h"
#include "client/stream/event.h"
#include "gpc_calls.h"
#include "tests/test.h"
#include "tests/unit/client/fake_daemon.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MANY 3000

static int ended;
static struct fake_daemon fake;
static struct gpc_session *session;

static int
setup(void **state)
{
	fake.answer = fake_daemon_answer;
	fake_daemon_start(&fake, "unix", 16, &session);
	atomic_store(&gpc_lifecycle, CUDA_SUCCESS);
	return 0;
}

static int
teardown(void **state)
{
	fake_daemon_stop(&fake, session);
	return 0;
}

static void
nothing(void *data)
{
}

static void
count_end(void *data)
{
	(*(int *)data)++;
}

static CUgraph
graph_of(unsigned int nodes, CUgraphNode *list)
{
	CUgraph graph;

	assert_int_equal(gpc_cuGraphCreate(&graph, 0), CUDA_SUCCESS);
	for (unsigned int i = 0; i < nodes; i++)
		assert_int_equal(gpc_cuGraphAddEmptyNode(&list[i], graph, i ? &list[i - 1] : NULL,
							 i ? 1 : 0),
				 CUDA_SUCCESS);
	return graph;
}

static void
destroy(CUgraph graph)
{
	assert_int_equal(gpc_cuGraphDestroy(graph), CUDA_SUCCESS);
	assert_int_equal(gpc_cuGraphDestroy(graph), CUDA_ERROR_INVALID_VALUE);
}

UNIT_TEST(test_nodes_and_edges_are_told)
{
	CUgraphNode nodes[3], from[4], to[4], told[4];
	CUgraph graph = graph_of(3, nodes);
	CUgraphNodeType type;
	size_t count;

	assert_int_equal(gpc_cuGraphGetNodes(graph, NULL, &count), CUDA_SUCCESS);
	assert_int_equal(count, 3);
	count = 4;
	assert_int_equal(gpc_cuGraphGetNodes(graph, told, &count), CUDA_SUCCESS);
	assert_int_equal(count, 3);
	assert_memory_equal(told, nodes, sizeof(nodes));
	assert_null(told[3]);
	count = 2;
	assert_int_equal(gpc_cuGraphGetNodes(graph, told, &count), CUDA_SUCCESS);
	assert_int_equal(count, 2);
	count = 4;
	assert_int_equal(gpc_cuGraphGetRootNodes(graph, told, &count), CUDA_SUCCESS);
	assert_int_equal(count, 1);
	assert_ptr_equal(told[0], nodes[0]);
	count = 4;
	assert_int_equal(gpc_cuGraphGetEdges(graph, from, to, &count), CUDA_SUCCESS);
	assert_int_equal(count, 2);
	assert_ptr_equal(from[1], nodes[1]);
	assert_ptr_equal(to[1], nodes[2]);
	assert_null(from[2]);
	count = 4;
	assert_int_equal(gpc_cuGraphNodeGetDependencies(nodes[2], told, &count), CUDA_SUCCESS);
	assert_int_equal(count, 1);
	assert_ptr_equal(told[0], nodes[1]);
	assert_int_equal(gpc_cuGraphNodeGetDependentNodes(nodes[2], NULL, &count), CUDA_SUCCESS);
	assert_int_equal(count, 0);
	assert_int_equal(gpc_cuGraphNodeGetType(nodes[0], &type), CUDA_SUCCESS);
	assert_int_equal(type, CU_GRAPH_NODE_TYPE_EMPTY);
	destroy(graph);
	assert_int_equal(gpc_cuGraphNodeGetType(nodes[0], &type), CUDA_ERROR_INVALID_VALUE);
}

UNIT_TEST(test_a_destroyed_node_takes_its_edges_along)
{
	CUgraphNode nodes[3];
	CUgraph graph = graph_of(3, nodes);
	size_t count;

	assert_int_equal(gpc_cuGraphDestroyNode(nodes[1]), CUDA_SUCCESS);
	assert_int_equal(gpc_cuGraphDestroyNode(nodes[1]), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuGraphGetEdges(graph, NULL, NULL, &count), CUDA_SUCCESS);
	assert_int_equal(count, 0);
	assert_int_equal(gpc_cuGraphGetRootNodes(graph, NULL, &count), CUDA_SUCCESS);
	assert_int_equal(count, 2);
	destroy(graph);
}

UNIT_TEST(test_wrong_edges_are_refused)
{
	CUgraphNode nodes[2], others[1], node;
	CUgraph graph = graph_of(2, nodes), other = graph_of(1, others);
	CUgraphNode twice[2] = { nodes[0], nodes[0] };
	const CUgraphEdgeData data = { .type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC };
	size_t count;

	assert_int_equal(gpc_cuGraphAddDependencies(graph, &nodes[0], &nodes[1], 1),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuGraphAddDependencies(graph, &nodes[0], &nodes[0], 1),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuGraphAddDependencies(graph, &nodes[0], &others[0], 1),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuGraphAddDependencies(graph, NULL, NULL, 1),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuGraphRemoveDependencies(graph, &nodes[1], &nodes[0], 1),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuGraphRemoveDependencies_v2(graph, &nodes[0], &nodes[1], &data, 1),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuGraphRemoveDependencies(graph, &nodes[0], &nodes[1], 1),
			 CUDA_SUCCESS);
	/* Programmatic edges are those of kernels. */
	assert_int_equal(gpc_cuGraphAddDependencies_v2(graph, &nodes[0], &nodes[1], &data, 1),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuGraphAddEmptyNode(&node, graph, twice, 2), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuGraphAddEmptyNode(&node, graph, others, 1),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuGraphAddEmptyNode(&node, graph, NULL, 1), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuGraphAddEmptyNode(NULL, graph, NULL, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuGraphAddEmptyNode(&node, NULL, NULL, 0), CUDA_ERROR_INVALID_VALUE);
	/* The rejected calls have left nothing. */
	assert_int_equal(gpc_cuGraphGetNodes(graph, NULL, &count), CUDA_SUCCESS);
	assert_int_equal(count, 2);
	destroy(graph);
	destroy(other);
}

UNIT_TEST(test_a_cycle_is_found_when_it_is_sorted)
{
	CUgraphNode nodes[4];
	CUgraph token = graph_of(4, nodes);
	struct gpc_graph *graph;
	struct gpc_node **sorted;

	assert_int_equal(gpc_graphs_begin_graph(token, &graph), CUDA_SUCCESS);
	assert_int_equal(gpc_graph_sort(graph, &sorted), CUDA_SUCCESS);
	for (size_t i = 0; i < 4; i++) {
		assert_ptr_equal(sorted[i]->handle.token, nodes[i]);
		assert_int_equal(sorted[i]->mark, i);
	}
	free(sorted);
	gpc_graphs_end(CUDA_SUCCESS);
	assert_int_equal(gpc_cuGraphAddDependencies(token, &nodes[3], &nodes[1], 1), CUDA_SUCCESS);
	assert_int_equal(gpc_graphs_begin_graph(token, &graph), CUDA_SUCCESS);
	assert_int_equal(gpc_graph_sort(graph, &sorted), CUDA_ERROR_INVALID_VALUE);
	gpc_graphs_end(CUDA_SUCCESS);
	destroy(token);
}

/* A random graph: every edge goes forward, so the order must hold. */
UNIT_TEST(test_the_order_holds_for_any_graph)
{
	static CUgraphNode nodes[MANY];
	struct gpc_node **sorted;
	struct gpc_graph *graph;
	unsigned int seed = 17;
	CUgraph token;

	assert_int_equal(gpc_cuGraphCreate(&token, 0), CUDA_SUCCESS);
	for (unsigned int i = 0; i < MANY; i++)
		assert_int_equal(gpc_cuGraphAddEmptyNode(&nodes[i], token, NULL, 0), CUDA_SUCCESS);
	for (unsigned int i = 0; i < 2 * MANY; i++) {
		unsigned int a = (unsigned int)rand_r(&seed) % MANY;
		unsigned int b = (unsigned int)rand_r(&seed) % MANY;

		/* From the higher to the lower number: the order of adding is no order. */
		if (a > b)
			(void)gpc_cuGraphAddDependencies(token, &nodes[a], &nodes[b], 1);
	}
	assert_int_equal(gpc_graphs_begin_graph(token, &graph), CUDA_SUCCESS);
	assert_int_equal(gpc_graph_sort(graph, &sorted), CUDA_SUCCESS);
	for (size_t i = 0; i < MANY; i++) {
		for (size_t j = 0; j < sorted[i]->in.count; j++)
			assert_true(sorted[i]->in.list[j].node->mark < i);
	}
	free(sorted);
	gpc_graphs_end(CUDA_SUCCESS);
	destroy(token);
}

UNIT_TEST(test_a_clone_is_a_graph_of_its_own)
{
	CUgraphNode nodes[3], found, other;
	CUgraph graph = graph_of(3, nodes), clone;
	size_t count;

	assert_int_equal(gpc_cuGraphClone(&clone, graph), CUDA_SUCCESS);
	assert_int_equal(gpc_cuGraphNodeFindInClone(&found, nodes[1], clone), CUDA_SUCCESS);
	assert_ptr_not_equal(found, nodes[1]);
	assert_int_equal(gpc_cuGraphNodeGetDependencies(found, NULL, &count), CUDA_SUCCESS);
	assert_int_equal(count, 1);
	assert_int_equal(gpc_cuGraphNodeFindInClone(&other, found, clone),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuGraphNodeFindInClone(&other, nodes[1], graph),
			 CUDA_ERROR_INVALID_VALUE);
	destroy(graph);
	assert_int_equal(gpc_cuGraphGetNodes(clone, NULL, &count), CUDA_SUCCESS);
	assert_int_equal(count, 3);
	destroy(clone);
}

UNIT_TEST(test_a_child_is_a_copy_that_goes_with_its_node)
{
	CUgraphNode nodes[2], child;
	CUgraph graph, inner = graph_of(2, nodes), copy;
	size_t count;

	assert_int_equal(gpc_cuGraphCreate(&graph, 0), CUDA_SUCCESS);
	assert_int_equal(gpc_cuGraphAddChildGraphNode(&child, graph, NULL, 0, inner), CUDA_SUCCESS);
	destroy(inner);
	assert_int_equal(gpc_cuGraphChildGraphNodeGetGraph(child, &copy), CUDA_SUCCESS);
	assert_ptr_not_equal(copy, inner);
	assert_int_equal(gpc_cuGraphGetNodes(copy, NULL, &count), CUDA_SUCCESS);
	assert_int_equal(count, 2);
	assert_int_equal(gpc_cuGraphDestroy(copy), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuGraphAddChildGraphNode(&child, graph, NULL, 0, inner),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuGraphAddChildGraphNode(&child, graph, NULL, 0, graph), CUDA_SUCCESS);
	destroy(graph);
	assert_int_equal(gpc_cuGraphGetNodes(copy, NULL, &count), CUDA_ERROR_INVALID_VALUE);
}

UNIT_TEST(test_nodes_keep_what_they_were_given)
{
	const CUDA_HOST_NODE_PARAMS host = { .fn = nothing, .userData = state };
	CUDA_HOST_NODE_PARAMS told = { 0 };
	struct gpc_event *event = gpc_handle_new(GPC_KIND_EVENT, sizeof(*event));
	CUgraphNodeParams any = { .type = CU_GRAPH_NODE_TYPE_EVENT_RECORD };
	CUgraphNode a, b;
	CUevent seen;
	CUgraph graph;

	assert_int_equal(gpc_cuGraphCreate(&graph, 1), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuGraphCreate(&graph, 0), CUDA_SUCCESS);
	assert_int_equal(gpc_cuGraphAddHostNode(&a, graph, NULL, 0, &told),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuGraphAddHostNode(&a, graph, NULL, 0, &host), CUDA_SUCCESS);
	assert_int_equal(gpc_cuGraphHostNodeGetParams(a, &told), CUDA_SUCCESS);
	assert_memory_equal(&told, &host, sizeof(host));
	told.userData = NULL;
	assert_int_equal(gpc_cuGraphHostNodeSetParams(a, &told), CUDA_SUCCESS);
	assert_int_equal(gpc_cuGraphAddNode(&b, graph, &a, 1, &any), CUDA_ERROR_INVALID_VALUE);
	any.eventRecord.event = event->handle.token;
	assert_int_equal(gpc_cuGraphAddNode(&b, graph, &a, 1, &any), CUDA_SUCCESS);
	assert_int_equal(gpc_cuGraphEventRecordNodeGetEvent(b, &seen), CUDA_SUCCESS);
	assert_ptr_equal(seen, event->handle.token);
	assert_int_equal(gpc_cuGraphEventWaitNodeGetEvent(b, &seen), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuGraphHostNodeGetParams(b, &told), CUDA_ERROR_INVALID_VALUE);
	any.type = CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL;
	assert_int_equal(gpc_cuGraphAddNode(&b, graph, &a, 1, &any), CUDA_ERROR_NOT_SUPPORTED);
	any.type = (CUgraphNodeType)99;
	assert_int_equal(gpc_cuGraphAddNode(&b, graph, &a, 1, &any), CUDA_ERROR_INVALID_VALUE);
	destroy(graph);
	gpc_handle_remove(&event->handle);
}

UNIT_TEST(test_a_user_object_ends_with_the_last_graph)
{
	CUgraph graph, clone;
	CUuserObject object;

	assert_int_equal(gpc_cuUserObjectCreate(&object, &ended, count_end, 1, 0),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuUserObjectCreate(&object, &ended, count_end, 1,
						CU_USER_OBJECT_NO_DESTRUCTOR_SYNC),
			 CUDA_SUCCESS);
	assert_int_equal(gpc_cuGraphCreate(&graph, 0), CUDA_SUCCESS);
	assert_int_equal(gpc_cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE),
			 CUDA_SUCCESS);
	assert_int_equal(gpc_cuUserObjectRetain(object, 1), CUDA_SUCCESS);
	assert_int_equal(gpc_cuUserObjectRelease(object, 1), CUDA_SUCCESS);
	assert_int_equal(gpc_cuUserObjectRelease(object, 2), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuGraphReleaseUserObject(graph, object, 2), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuGraphClone(&clone, graph), CUDA_SUCCESS);
	destroy(graph);
	assert_int_equal(ended, 0);
	assert_int_equal(gpc_cuGraphReleaseUserObject(clone, object, 1), CUDA_SUCCESS);
	assert_int_equal(ended, 1);
	assert_int_equal(gpc_cuUserObjectRetain(object, 1), CUDA_ERROR_INVALID_VALUE);
	destroy(clone);
	assert_int_equal(ended, 1);
}

UNIT_TEST(test_dot_has_nodes_edges_and_child_graphs)
{
	static const char wanted[] = "digraph dot {\n"
				     "subgraph cluster_1 {\n"
				     "label=\"graph_1\";\n"
				     "\"graph_1_node_0\"[label=\"0\nHOST\n\"];\n"
				     "\"graph_1_node_1\"[label=\"1\nGRAPH\ngraph_2\n\"];\n"
				     "\"graph_1_node_0\" -> \"graph_1_node_1\";\n"
				     "}\n"
				     "subgraph cluster_2 {\n"
				     "label=\"graph_2\";\n"
				     "\"graph_2_node_0\"[label=\"0\nEMPTY\n\"];\n"
				     "}\n"
				     "}\n";
	const CUDA_HOST_NODE_PARAMS host = { .fn = nothing };
	char path[] = "dot-XXXXXX", seen[sizeof(wanted) + 1] = "";
	CUgraphNode inside[1], node, child;
	CUgraph graph, inner = graph_of(1, inside);
	int file = mkstemp(path);
	FILE *stream;

	assert_true(file >= 0);
	(void)close(file);
	assert_int_equal(gpc_cuGraphCreate(&graph, 0), CUDA_SUCCESS);
	assert_int_equal(gpc_cuGraphAddHostNode(&node, graph, NULL, 0, &host), CUDA_SUCCESS);
	assert_int_equal(gpc_cuGraphAddChildGraphNode(&child, graph, &node, 1, inner),
			 CUDA_SUCCESS);
	assert_int_equal(gpc_cuGraphDebugDotPrint(graph, path, 0), CUDA_SUCCESS);
	stream = fopen(path, "r");
	assert_non_null(stream);
	assert_int_equal(fread(seen, 1, sizeof(seen) - 1, stream), sizeof(wanted) - 1);
	(void)fclose(stream);
	(void)unlink(path);
	assert_string_equal(seen, wanted);
	assert_int_equal(gpc_cuGraphDebugDotPrint(graph, NULL, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuGraphDebugDotPrint(NULL, path, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuGraphDebugDotPrint(graph, "/nowhere/at/all", 0),
			 CUDA_ERROR_OPERATING_SYSTEM);
	destroy(graph);
	destroy(inner);
}

UNIT_TEST_MAIN(setup, teardown)
