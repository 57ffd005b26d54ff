/* SPDX-License-Identifier: Apache-2.0 */
/* Executable graphs: the calls that the daemon receives, and that no thread waits for it under the
 * lock. */
#include "client/context/lifecycle.h"
#include "client/entry/context_parts.h"
#include "client/graph/capture.h"
#include "client/graph/graph.h"
#include "client/memory/globals.h"
#include "client/stream/stream.h"
#include "gpc_calls.h"
#include "tests/test.h"
#include "tests/unit/client/fake_daemon.h"

#include <endian.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CELLS_SIZE 4096
#define IMAGE 9
#define PATIENCE_MS 30000

static struct fake_daemon fake;
static struct gpc_session *session;
static struct gpc_device device;
static struct gpc_context context;
static struct gpc_stream legacy, *stream;
static CUdeviceptr cells;
static unsigned int made, remade, launched, dropped, uploaded;
/* The daemon's names of graphs that kernels may launch. */
static uint64_t exec_name;
/* Whether the daemon has received a graph that it does not reply to. */
static atomic_bool hold_makes, held;
static CUresult make_result;
/* The fence that the daemon does not reply to. */
static atomic_bool hold_fence, fence_held;
static struct gp_header fence;
static atomic_int ended;

/* In the daemon's thread. */
static int
answer(struct fake_daemon *daemon, const struct gp_header *header, const void *fields, size_t size)
{
	made += header->call == GP_CALL_gpGraphPut || header->call == GP_CALL_gpGraphMake;
	remade += header->call == GP_CALL_gpGraphRemake;
	launched += header->call == GP_CALL_gpGraphLaunch;
	dropped += header->call == GP_CALL_gpGraphDrop;
	uploaded += header->call == GP_CALL_gpGraphUpload;
	if (header->call == GP_CALL_gpFence && atomic_load(&hold_fence)) {
		fence = *header;
		atomic_store(&fence_held, true);
		return 0;
	}
	if (header->call == GP_CALL_gpGraphMakeLaunchable) {
		const uint64_t name = htole64(exec_name);

		fake_daemon_reply(daemon, header, CUDA_SUCCESS, &name, sizeof(name));
		return 0;
	}
	if (header->call == GP_CALL_gpGraphPut && make_result != CUDA_SUCCESS)
		fake_daemon_note_error_of(daemon, make_result, false, GP_CALL_gpGraphPut);
	if (header->call != GP_CALL_gpGraphMake)
		return fake_daemon_answer(daemon, header, fields, size);
	if (atomic_load(&hold_makes)) {
		atomic_store(&held, true);
		(void)sem_wait(&daemon->proceed);
	}
	fake_daemon_reply(daemon, header, make_result, NULL, 0);
	return 0;
}

/* The thread sanitizer leaves a process few addresses: one that it has given itself is good. */
static CUdeviceptr
free_address(void)
{
	void *found = mmap(NULL, CELLS_SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(found != MAP_FAILED);
	(void)munmap(found, CELLS_SIZE);
	return (CUdeviceptr)(uintptr_t)found;
}

static int
setup(void **state)
{
	memset(&fake, 0, sizeof(fake));
	made = remade = launched = dropped = uploaded = 0;
	exec_name = 0x5500000040;
	make_result = CUDA_SUCCESS;
	atomic_store(&hold_makes, false);
	atomic_store(&held, false);
	atomic_store(&hold_fence, false);
	atomic_store(&fence_held, false);
	atomic_store(&ended, 0);
	fake.answer = answer;
	fake_daemon_start(&fake, "unix", 16, &session);
	device = (struct gpc_device){ .session = session };
	memset(&context, 0, sizeof(context));
	context.device = &device;
	context.scope = (struct gpc_scope){ session, 1 };
	context.legacy = &legacy;
	(void)pthread_mutex_init(&context.lock, NULL);
	legacy = (struct gpc_stream){ .context = &context, .legacy = true, .number = 1 };
	stream = gpc_handle_new(GPC_KIND_STREAM, sizeof(*stream));
	stream->context = &context;
	stream->number = 2;
	atomic_store(&gpc_lifecycle, CUDA_SUCCESS);
	assert_int_equal(gpc_context_set_current(&context), CUDA_SUCCESS);
	/* Another thread's mapping may have come to the address first. */
	for (int i = 0; i < 100; i++) {
		cells = free_address();
		if (gpc_globals_add(&context, cells, CELLS_SIZE, false, IMAGE) == 0)
			return 0;
	}
	return -1;
}

/* Such a daemon is waited for. */
static void
make_daemon_old(void)
{
	fake_daemon_lacks(session, GP_CALL_gpGraphPut);
}

static int
teardown(void **state)
{
	gpc_globals_drop_image(IMAGE);
	gpc_handle_remove(&stream->handle);
	assert_int_equal(gpc_context_set_current(NULL), CUDA_SUCCESS);
	atomic_store(&gpc_lifecycle, CUDA_ERROR_NOT_INITIALIZED);
	fake_daemon_stop(&fake, session);
	return 0;
}

static CUDA_MEMSET_NODE_PARAMS
fill_with(unsigned int value)
{
	return (CUDA_MEMSET_NODE_PARAMS){
		.dst = cells, .elementSize = 4, .width = 16, .height = 1, .value = value
	};
}

/* A graph of one memset. */
static CUgraph
graph_of_fill(CUgraphNode *node)
{
	const CUDA_MEMSET_NODE_PARAMS fill = fill_with(1);
	CUgraph graph;

	assert_int_equal(gpc_cuGraphCreate(&graph, 0), CUDA_SUCCESS);
	assert_int_equal(gpc_cuGraphAddMemsetNode(node, graph, NULL, 0, &fill, NULL), CUDA_SUCCESS);
	return graph;
}

static void
settle(void)
{
	const struct gp_args_gpFence args = { 0 };

	assert_int_equal(gpc_wait_gpFence(&context, &args), CUDA_SUCCESS);
}

#define TEST(test) UNIT_TEST_WITH(test, setup, teardown)

TEST(test_a_set_is_made_once_and_launched_often)
{
	CUgraphExec exec;
	CUgraphNode node;
	CUgraph graph = graph_of_fill(&node);

	assert_int_equal(gpc_cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_SUCCESS);
	for (int i = 0; i < 3; i++)
		assert_int_equal(gpc_cuGraphLaunch(exec, stream->handle.token), CUDA_SUCCESS);
	assert_int_equal(gpc_cuGraphExecDestroy(exec), CUDA_SUCCESS);
	assert_int_equal(gpc_cuGraphExecDestroy(exec), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuGraphLaunch(exec, stream->handle.token), CUDA_ERROR_INVALID_VALUE);
	settle();
	assert_int_equal(made, 1);
	assert_int_equal(launched, 3);
	assert_int_equal(dropped, 1);
	assert_int_equal(gpc_cuGraphDestroy(graph), CUDA_SUCCESS);
}

TEST(test_a_change_is_sent_with_the_next_launch)
{
	const CUDA_MEMSET_NODE_PARAMS other = fill_with(2);
	CUgraphExec exec;
	CUgraphNode node;
	CUgraph graph = graph_of_fill(&node);

	assert_int_equal(gpc_cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_SUCCESS);
	assert_int_equal(gpc_cuGraphExecMemsetNodeSetParams(exec, node, &other, NULL),
			 CUDA_SUCCESS);
	settle();
	assert_int_equal(remade, 0);
	assert_int_equal(gpc_cuGraphLaunch(exec, stream->handle.token), CUDA_SUCCESS);
	assert_int_equal(gpc_cuGraphLaunch(exec, stream->handle.token), CUDA_SUCCESS);
	settle();
	assert_int_equal(remade, 1);
	assert_int_equal(launched, 2);
	assert_int_equal(gpc_cuGraphExecDestroy(exec), CUDA_SUCCESS);
	assert_int_equal(gpc_cuGraphDestroy(graph), CUDA_SUCCESS);
}

TEST(test_what_the_daemon_refuses_late_is_told_once)
{
	const struct gp_args_gpFence fence_args = { 0 };
	CUgraphExec exec;
	CUgraphNode node;
	CUgraph graph = graph_of_fill(&node);

	make_result = CUDA_ERROR_OUT_OF_MEMORY;
	assert_int_equal(gpc_cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_SUCCESS);
	assert_int_equal(gpc_wait_gpFence(&context, &fence_args), CUDA_ERROR_OUT_OF_MEMORY);
	settle();
	assert_int_equal(made, 1);
	assert_int_equal(gpc_cuGraphExecDestroy(exec), CUDA_SUCCESS);
	settle();
	assert_int_equal(dropped, 1);
	assert_int_equal(gpc_cuGraphDestroy(graph), CUDA_SUCCESS);
}

TEST(test_what_an_old_daemon_refuses_leaves_nothing)
{
	CUgraphExec exec = NULL;
	CUgraphNode node;
	CUgraph graph = graph_of_fill(&node);

	make_daemon_old();
	make_result = CUDA_ERROR_OUT_OF_MEMORY;
	assert_int_equal(gpc_cuGraphInstantiateWithFlags(&exec, graph, 0),
			 CUDA_ERROR_OUT_OF_MEMORY);
	assert_null(exec);
	settle();
	assert_int_equal(dropped, 0);
	make_result = CUDA_SUCCESS;
	assert_int_equal(gpc_cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_SUCCESS);
	assert_int_equal(gpc_cuGraphExecDestroy(exec), CUDA_SUCCESS);
	assert_int_equal(gpc_cuGraphDestroy(graph), CUDA_SUCCESS);
}

TEST(test_what_cannot_be_run_is_refused)
{
	CUgraphExec exec = NULL;
	CUgraphNode nodes[2], child, error = NULL;
	CUgraph graph = graph_of_fill(&nodes[0]), outer, inner;

	assert_int_equal(gpc_cuGraphAddEmptyNode(&nodes[1], graph, nodes, 1), CUDA_SUCCESS);
	assert_int_equal(gpc_cuGraphAddDependencies(graph, &nodes[1], &nodes[0], 1), CUDA_SUCCESS);
	assert_int_equal(gpc_cuGraphInstantiateWithFlags(&exec, graph, 0),
			 CUDA_ERROR_INVALID_VALUE);
	/* The same inside of a child. */
	assert_int_equal(gpc_cuGraphCreate(&outer, 0), CUDA_SUCCESS);
	assert_int_equal(gpc_cuGraphAddChildGraphNode(&child, outer, NULL, 0, graph), CUDA_SUCCESS);
	assert_int_equal(gpc_cuGraphInstantiate_v2(&exec, outer, &error, NULL, 0),
			 CUDA_ERROR_INVALID_VALUE);
	/* A child that has gone with its node. */
	assert_int_equal(gpc_cuGraphChildGraphNodeGetGraph(child, &inner), CUDA_SUCCESS);
	assert_int_equal(gpc_cuGraphDestroyNode(child), CUDA_SUCCESS);
	assert_int_equal(gpc_cuGraphInstantiateWithFlags(&exec, inner, 0),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuGraphDestroy(graph), CUDA_SUCCESS);
	assert_int_equal(gpc_cuGraphInstantiateWithFlags(&exec, graph, 0),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuGraphInstantiateWithFlags(NULL, outer, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuGraphInstantiateWithFlags(&exec, outer, 1u << 30),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuGraphDestroy(outer), CUDA_SUCCESS);
	assert_null(exec);
	settle();
	assert_int_equal(made, 0);
}

TEST(test_what_kernels_may_launch_has_the_daemons_name)
{
	const unsigned long long flag = CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH;
	const CUDA_MEMSET_NODE_PARAMS other = fill_with(2);
	CUgraphExec exec, second;
	cuuint64_t flags;
	CUgraphNode node, child, empty;
	CUgraph graph = graph_of_fill(&node), outer;

	assert_int_equal(gpc_cuGraphInstantiateWithFlags(&exec, graph, flag), CUDA_SUCCESS);
	assert_ptr_equal(exec, (CUgraphExec)(uintptr_t)exec_name);
	assert_int_equal(gpc_cuGraphExecGetFlags(exec, &flags), CUDA_SUCCESS);
	assert_int_equal(flags, flag);
	exec_name += 64;
	assert_int_equal(gpc_cuGraphInstantiateWithFlags(&second, graph, flag), CUDA_SUCCESS);
	assert_int_equal(gpc_cuGraphUpload(exec, stream->handle.token), CUDA_SUCCESS);
	assert_int_equal(gpc_cuGraphExecMemsetNodeSetParams(exec, node, &other, NULL),
			 CUDA_SUCCESS);
	assert_int_equal(gpc_cuGraphUpload(exec, stream->handle.token), CUDA_SUCCESS);
	assert_int_equal(gpc_cuGraphLaunch(second, stream->handle.token), CUDA_SUCCESS);
	assert_int_equal(gpc_cuGraphExecDestroy(exec), CUDA_SUCCESS);
	assert_int_equal(gpc_cuGraphExecDestroy(exec), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuGraphLaunch(exec, stream->handle.token), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuGraphExecDestroy(second), CUDA_SUCCESS);
	settle();
	assert_int_equal(uploaded, 2);
	assert_int_equal(remade, 1);
	assert_int_equal(launched, 1);
	assert_int_equal(dropped, 2);
	/* In a child, too; but not what is of another kind, nor nothing. */
	assert_int_equal(gpc_cuGraphCreate(&outer, 0), CUDA_SUCCESS);
	assert_int_equal(gpc_cuGraphInstantiateWithFlags(&exec, outer, flag),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuGraphAddChildGraphNode(&child, outer, NULL, 0, graph), CUDA_SUCCESS);
	assert_int_equal(gpc_cuGraphInstantiateWithFlags(&exec, outer, flag), CUDA_SUCCESS);
	assert_int_equal(gpc_cuGraphExecDestroy(exec), CUDA_SUCCESS);
	assert_int_equal(gpc_cuGraphAddEmptyNode(&empty, outer, NULL, 0), CUDA_SUCCESS);
	assert_int_equal(gpc_cuGraphInstantiateWithFlags(&exec, outer, flag),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(
		gpc_cuGraphInstantiateWithFlags(
			&exec, graph, flag | CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH),
		CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuGraphDestroy(graph), CUDA_SUCCESS);
	assert_int_equal(gpc_cuGraphDestroy(outer), CUDA_SUCCESS);
}

static bool
becomes(atomic_bool *flag)
{
	for (int i = 0; i < PATIENCE_MS && !atomic_load(flag); i++)
		(void)usleep(1000);
	return atomic_load(flag);
}

struct other {
	CUgraph graph;
	CUgraphExec exec;
	CUresult result;
	atomic_bool done;
};

static void *
instantiate(void *arg)
{
	struct other *other = arg;

	(void)gpc_context_set_current(&context);
	other->result = gpc_cuGraphInstantiateWithFlags(&other->exec, other->graph, 0);
	atomic_store(&other->done, true);
	return NULL;
}

static void *
use_graphs(void *arg)
{
	struct other *other = arg;
	CUgraph graph;

	(void)gpc_context_set_current(&context);
	other->result = gpc_cuGraphCreate(&graph, 0);
	if (other->result == CUDA_SUCCESS)
		other->result = gpc_cuGraphDestroy(graph);
	if (other->result == CUDA_SUCCESS)
		other->result = gpc_cuGraphLaunch(other->exec, stream->handle.token);
	atomic_store(&other->done, true);
	return NULL;
}

TEST(test_others_go_on_while_the_daemon_makes_a_graph)
{
	struct other maker = { 0 }, user = { 0 };
	pthread_t threads[2];
	CUgraphNode node;
	bool went_on;

	maker.graph = graph_of_fill(&node);
	assert_int_equal(gpc_cuGraphInstantiateWithFlags(&user.exec, maker.graph, 0), CUDA_SUCCESS);
	make_daemon_old();
	atomic_store(&hold_makes, true);
	assert_int_equal(pthread_create(&threads[0], NULL, instantiate, &maker), 0);
	assert_true(becomes(&held));
	assert_int_equal(pthread_create(&threads[1], NULL, use_graphs, &user), 0);
	went_on = becomes(&user.done);
	assert_false(atomic_load(&maker.done));
	atomic_store(&hold_makes, false);
	(void)sem_post(&fake.proceed);
	for (int i = 0; i < 2; i++)
		(void)pthread_join(threads[i], NULL);
	assert_true(went_on);
	assert_int_equal(maker.result, CUDA_SUCCESS);
	assert_int_equal(user.result, CUDA_SUCCESS);
	assert_int_equal(gpc_cuGraphExecDestroy(maker.exec), CUDA_SUCCESS);
	assert_int_equal(gpc_cuGraphExecDestroy(user.exec), CUDA_SUCCESS);
	assert_int_equal(gpc_cuGraphDestroy(maker.graph), CUDA_SUCCESS);
}

static void
count_end(void *data)
{
	atomic_fetch_add(&ended, 1);
}

/* An executable that alone holds an object of the application. */
static CUgraphExec
exec_with_object(void)
{
	CUuserObject object;
	CUgraphExec exec;
	CUgraphNode node;
	CUgraph graph = graph_of_fill(&node);

	assert_int_equal(gpc_cuUserObjectCreate(&object, NULL, count_end, 1,
						CU_USER_OBJECT_NO_DESTRUCTOR_SYNC),
			 CUDA_SUCCESS);
	assert_int_equal(gpc_cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE),
			 CUDA_SUCCESS);
	assert_int_equal(gpc_cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_SUCCESS);
	assert_int_equal(gpc_cuGraphDestroy(graph), CUDA_SUCCESS);
	assert_int_equal(ended, 0);
	return exec;
}

TEST(test_user_objects_end_behind_the_launches)
{
	CUgraphExec exec = exec_with_object();

	assert_int_equal(gpc_cuGraphLaunch(exec, stream->handle.token), CUDA_SUCCESS);
	atomic_store(&hold_fence, true);
	assert_int_equal(gpc_cuGraphExecDestroy(exec), CUDA_SUCCESS);
	assert_true(becomes(&fence_held));
	assert_int_equal(ended, 0);
	atomic_store(&hold_fence, false);
	fake_daemon_reply(&fake, &fence, CUDA_SUCCESS, NULL, 0);
	for (int i = 0; i < PATIENCE_MS && atomic_load(&ended) == 0; i++)
		(void)usleep(1000);
	assert_int_equal(ended, 1);
}

TEST(test_user_objects_of_what_was_never_launched_end_at_once)
{
	CUgraphExec exec = exec_with_object();

	assert_int_equal(gpc_cuGraphExecDestroy(exec), CUDA_SUCCESS);
	assert_int_equal(ended, 1);
}

TEST(test_a_step_that_records_an_event_takes_it_out_of_a_capture)
{
	struct gpc_event *event = gpc_handle_new(GPC_KIND_EVENT, sizeof(*event));
	struct gpc_stream *other = gpc_handle_new(GPC_KIND_STREAM, sizeof(*other));
	CUevent token = event->handle.token;
	CUgraphExec exec;
	CUgraphNode node;
	CUgraph graph, captured;

	event->context = &context;
	other->context = &context;
	other->number = 3;
	assert_int_equal(gpc_cuGraphCreate(&graph, 0), CUDA_SUCCESS);
	assert_int_equal(gpc_cuGraphAddEventRecordNode(&node, graph, NULL, 0, token), CUDA_SUCCESS);
	assert_int_equal(gpc_cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_SUCCESS);
	assert_int_equal(
		gpc_cuStreamBeginCapture_v2(other->handle.token, CU_STREAM_CAPTURE_MODE_RELAXED),
		CUDA_SUCCESS);
	assert_int_equal(gpc_capture_cuEventRecord(token, other->handle.token), CUDA_SUCCESS);
	assert_int_equal(gpc_cuGraphLaunch(exec, stream->handle.token), CUDA_SUCCESS);
	/* It would make the capture invalid. */
	assert_int_equal(gpc_capture_cuEventQuery(token), GPC_NOT_CAPTURED);
	assert_int_equal(gpc_cuStreamEndCapture(other->handle.token, &captured), CUDA_SUCCESS);
	assert_int_equal(gpc_cuGraphDestroy(captured), CUDA_SUCCESS);
	assert_int_equal(gpc_cuGraphDestroy(graph), CUDA_SUCCESS);
	assert_int_equal(gpc_cuGraphExecDestroy(exec), CUDA_SUCCESS);
	gpc_handle_remove(&other->handle);
	gpc_handle_remove(&event->handle);
}

TEST(test_captures_end_with_their_context)
{
	struct gpc_context far_context = { .device = &device, .scope = { session, 2 } };
	struct gpc_stream far = { .context = &far_context, .number = 4 };
	CUstreamCaptureStatus status;
	CUgraph graph;

	assert_int_equal(
		gpc_cuStreamBeginCapture_v2(stream->handle.token, CU_STREAM_CAPTURE_MODE_RELAXED),
		CUDA_SUCCESS);
	assert_int_equal(gpc_graphs_begin(), CUDA_SUCCESS);
	assert_int_equal(gpc_capture_begin(&far, CU_STREAM_CAPTURE_MODE_RELAXED, NULL),
			 CUDA_SUCCESS);
	gpc_graphs_end(CUDA_SUCCESS);
	assert_int_equal(gpc_captures, 2);
	gpc_context_parts_set();
	gpc_context_reset(&far_context);
	assert_int_equal(gpc_captures, 1);
	assert_int_equal(gpc_cuStreamIsCapturing(stream->handle.token, &status), CUDA_SUCCESS);
	assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
	gpc_capture_drop_context(&context);
	assert_int_equal(gpc_captures, 0);
	assert_int_equal(gpc_cuStreamEndCapture(stream->handle.token, &graph),
			 CUDA_ERROR_ILLEGAL_STATE);
}

/* The DOT file of the graph, as a string of at most size bytes. */
static void
dot_read(CUgraph graph, unsigned int flags, char *text, size_t size)
{
	char path[] = "dot-XXXXXX";
	int file = mkstemp(path);
	ssize_t length;

	assert_true(file >= 0);
	assert_int_equal(gpc_cuGraphDebugDotPrint(graph, path, flags), CUDA_SUCCESS);
	length = read(file, text, size - 1);
	assert_true(length > 0);
	text[length] = '\0';
	(void)close(file);
	(void)unlink(path);
}

TEST(test_dot_has_the_parameters_that_flags_ask_for)
{
	char seen[2048], host[16];
	const CUDA_MEMCPY3D copy = { .srcMemoryType = CU_MEMORYTYPE_DEVICE,
				     .srcDevice = cells,
				     .dstMemoryType = CU_MEMORYTYPE_HOST,
				     .dstHost = host,
				     .WidthInBytes = sizeof(host),
				     .Height = 1,
				     .Depth = 1 };
	CUgraphNode fill, node;
	CUgraph graph = graph_of_fill(&fill);

	assert_int_equal(gpc_cuGraphAddMemcpyNode(&node, graph, &fill, 1, &copy, NULL),
			 CUDA_SUCCESS);
	dot_read(graph, 0, seen, sizeof(seen));
	assert_non_null(strstr(seen, "label=\"0\nMEMSET\n\""));
	assert_non_null(strstr(seen, "label=\"1\nMEMCPY\nDtoH\n\""));
	dot_read(graph, CU_GRAPH_DEBUG_DOT_FLAGS_MEMCPY_NODE_PARAMS, seen, sizeof(seen));
	assert_non_null(strstr(seen, "\nwidth: 16\n"));
	assert_null(strstr(seen, "elementSize"));
	assert_null(strstr(seen, "handle"));
	dot_read(graph, CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE, seen, sizeof(seen));
	assert_non_null(strstr(seen, "\nwidth: 16\n"));
	assert_non_null(strstr(seen, "\nelementSize: 4\n"));
	assert_non_null(strstr(seen, "\nnode handle: "));
	assert_int_equal(gpc_cuGraphDestroy(graph), CUDA_SUCCESS);
}

UNIT_TEST_MAIN(NULL, NULL)
