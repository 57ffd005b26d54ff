/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs that a session's client sends: built, launched, charged for until the driver has ended
 * them, and refused when they are wrong. */
#include "gpd_calls.h"
#include "image/fatbin.h"
#include "protocol/graph_plan.h"
#include "protocol/image_info.h"
#include "server/worker/code/image_cache.h"
#include "server/worker/device/quiet_jobs.h"
#include "server/worker/graph/graph.h"
#include "server/worker/graph/graph_build.h"
#include "server/worker/image/image.h"
#include "server/worker/image/image_library.h"
#include "server/worker/image/library.h"
#include "server/worker/memory/memory.h"
#include "tests/test.h"
#include "tests/unit/server/server_fake.h"

#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#define PLAN 4
#define IMAGE 8
#define ZEBRA 1
#define MANY 1000000

static struct fake fake;
static struct gp_graph_writer writer;

static int
setup(void **state)
{
	fake_create(&fake);
	gpd_image_cache_start("", &(struct gpd_image_cache_limits){ 0, 0 });
	fake.session.handles.memory.ledger = fake.ledger;
	fake.session.handles.memory.line = fake.session.account.line;
	fake.ledger->host_max = UINT64_MAX;
	assert_int_equal(gpd_memory_create(&fake.session, FAKE_WINDOW, FAKE_WINDOW_SIZE), 0);
	gpd_memory_map(&fake.session, FAKE_WINDOW, FAKE_GRANULE, 0);
	fake_forget_calls();
	return 0;
}

static int
teardown(void **state)
{
	fake_run_markers(&fake, -1);
	gpd_graph_forget_session(&fake.session);
	gpd_image_forget_session(&fake.session);
	gpd_quiet_jobs_wait();
	gpd_memory_destroy(&fake.session);
	free(writer.memory);
	writer = (struct gp_graph_writer){ 0 };
	assert_int_equal(fake_execs, 0);
	assert_int_equal(fake_graphs, 0);
	fake_destroy(&fake);
	gpd_image_cache_stop();
	return 0;
}

static void
add_empty(const uint32_t *dependencies, uint32_t count)
{
	assert_non_null(gp_graph_write(&writer, 0, dependencies, count, 0));
}

static void
add_fill(uint64_t dst, const uint32_t *dependencies, uint32_t count)
{
	const struct gp_args_gpFill args = {
		.dst = dst, .pitch = 64, .element_size = 4, .width = 16, .height = 1
	};
	struct gp_enc enc;
	void *fields = gp_graph_write(&writer, GP_CALL_gpFill, dependencies, count,
				      gp_args_gpFill_size(&args));

	assert_non_null(fields);
	gp_enc_init(&enc, fields, gp_args_gpFill_size(&args));
	gp_args_gpFill_encode(&enc, &args);
	gp_graph_fit(&writer, gp_enc_size(&enc));
}

static void
add_copy(uint64_t dst, uint64_t src)
{
	const struct gp_args_gpCopyDevice args = {
		.dst = dst, .src = src, .width = 64, .height = 1, .depth = 1
	};
	struct gp_enc enc;
	void *fields = gp_graph_write(&writer, GP_CALL_gpCopyDevice, NULL, 0,
				      gp_args_gpCopyDevice_size(&args));

	assert_non_null(fields);
	gp_enc_init(&enc, fields, gp_args_gpCopyDevice_size(&args));
	gp_args_gpCopyDevice_encode(&enc, &args);
	gp_graph_fit(&writer, gp_enc_size(&enc));
}

static void
add_kernel(uint64_t kernel, size_t params_size)
{
	static const uint64_t params[4];
	const struct gp_args_gpLaunch args = { .kernel = kernel,
					       .grid_x = 1,
					       .grid_y = 1,
					       .grid_z = 1,
					       .block_x = 1,
					       .block_y = 1,
					       .block_z = 1,
					       .params = { params, params_size } };
	struct gp_enc enc;
	void *fields =
		gp_graph_write(&writer, GP_CALL_gpLaunch, NULL, 0, gp_args_gpLaunch_size(&args));

	assert_non_null(fields);
	gp_enc_init(&enc, fields, gp_args_gpLaunch_size(&args));
	gp_args_gpLaunch_encode(&enc, &args);
	gp_graph_fit(&writer, gp_enc_size(&enc));
}

static void
begin_plan(void)
{
	writer.size = writer.last = 0;
}

static void
bring_bulk(const void *bulk, size_t size)
{
	fake.bulk = bulk;
	fake.session.bulk_left = size;
}

static CUresult
make(uint32_t name)
{
	bring_bulk(writer.memory, writer.size);
	return gpd_gpGraphMake(&fake.session, &(struct gp_args_gpGraphMake){ FAKE_CONTEXT, name });
}

static CUresult
put(uint32_t name)
{
	bring_bulk(writer.memory, writer.size);
	return gpd_gpGraphPut(&fake.session, &(struct gp_args_gpGraphPut){ FAKE_CONTEXT, name });
}

static CUresult
make_launchable(uint32_t name, uint64_t *exec_p)
{
	struct gp_reply_gpGraphMakeLaunchable reply = { 0 };
	CUresult result;

	bring_bulk(writer.memory, writer.size);
	result = gpd_gpGraphMakeLaunchable(
		&fake.session, &(struct gp_args_gpGraphMakeLaunchable){ FAKE_CONTEXT, name },
		&reply);
	*exec_p = reply.exec;
	return result;
}

static CUresult
upload(uint32_t name)
{
	return gpd_gpGraphUpload(&fake.session,
				 &(struct gp_args_gpGraphUpload){ name, FAKE_STREAM });
}

static CUresult
remake(uint32_t name)
{
	bring_bulk(writer.memory, writer.size);
	return gpd_gpGraphRemake(&fake.session, &(struct gp_args_gpGraphRemake){ name });
}

static CUresult
launch(uint32_t name)
{
	return gpd_gpGraphLaunch(&fake.session,
				 &(struct gp_args_gpGraphLaunch){ name, FAKE_STREAM });
}

static CUresult
drop(uint32_t name)
{
	return gpd_gpGraphDrop(&fake.session, &(struct gp_args_gpGraphDrop){ name });
}

/* What the session's names are charged for now. */
static uint64_t
charged(void)
{
	assert_true(gpd_name_memory_add(&fake.session.handles.memory, 0));
	return fake.session.handles.memory.used;
}

static void
load_image(void)
{
	struct gp_reply_gpImageLoad reply = { 0 };
	struct gp_image *image;
	uint8_t sha256[GPD_SHA256_SIZE];
	struct gp_args_gpImageLoad args = { .context = FAKE_CONTEXT,
					    .image = IMAGE,
					    .sha256 = { sha256, sizeof(sha256) } };
	size_t size;
	void *flat;

	assert_int_equal(gp_image_create(".version 8.0\n.const .u32 few;\n", &image), 0);
	assert_int_equal(gp_image_flatten(image, NULL, &flat, &size), 0);
	gp_image_destroy(image);
	EVP_Digest(flat, size, sha256, NULL, EVP_sha256(), NULL);
	args.size = size;
	bring_bulk(flat, size);
	assert_int_equal(gpd_gpImageLoad(&fake.session, &args, &reply), CUDA_SUCCESS);
	free((void *)reply.info.data);
	free((void *)reply.log.data);
	free(flat);
	fake_forget_calls();
}

static void
a_graph_is_built_as_it_was_sent(void **state)
{
	const uint32_t both[] = { 0, 1 };

	load_image();
	add_fill(FAKE_WINDOW, NULL, 0);
	add_copy(FAKE_WINDOW + 4096, FAKE_WINDOW);
	add_empty(both, 2);
	add_kernel(GP_KERNEL(IMAGE, ZEBRA), 0);
	assert_int_equal(make(PLAN), CUDA_SUCCESS);
	assert_int_equal(launch(PLAN), CUDA_SUCCESS);
	assert_int_equal(launch(PLAN), CUDA_SUCCESS);
	assert_string_equal(fake_calls, "cuGraphCreate\n"
					"cuGraphAddMemsetNode behind 0: 16 x 1\n"
					"cuGraphAddMemcpyNode behind 0: 64 x 1\n"
					"cuGraphAddEmptyNode behind 2\n"
					"cuGraphAddKernelNode behind 0: zebra\n"
					"cuGraphInstantiate\n"
					"cuGraphLaunch\n"
					"cuGraphLaunch\n");
	assert_string_equal(fake.session.kernel, "zebra");
}

static void
a_dropped_graph_is_charged_until_the_driver_has_ended_it(void **state)
{
	uint64_t before;

	add_empty(NULL, 0);
	assert_int_equal(make(PLAN), CUDA_SUCCESS);
	assert_int_equal(drop(PLAN), CUDA_SUCCESS);
	fake_run_markers(&fake, -1);
	before = charged();
	assert_int_equal(make(PLAN), CUDA_SUCCESS);
	assert_int_equal(launch(PLAN), CUDA_SUCCESS);
	assert_int_equal(drop(PLAN), CUDA_SUCCESS);
	assert_int_equal(drop(PLAN), CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(fake_execs, 1);
	assert_in_range(charged(), before + GPD_GRAPH_NODE_COST, before + 2 * GPD_GRAPH_NODE_COST);
	fake_run_markers(&fake, -1);
	assert_int_equal(fake_execs, 0);
	assert_int_equal(charged(), before);
}

/* The third graph has all edges that there may be. */
static void
edges_are_charged(void **state)
{
	enum {
		ALL = 300,
		EDGES = ALL / 2 * (ALL - 1)
	};
	uint32_t before[ALL];
	uint64_t sums[3];

	for (uint32_t name = 0; name < 3; name++) {
		begin_plan();
		for (uint32_t i = 0; i < ALL; i++) {
			before[i] = i;
			add_empty(before, name == 2 ? i : 0);
		}
		assert_int_equal(make(PLAN + name), CUDA_SUCCESS);
		sums[name] = charged();
	}
	assert_in_range(sums[2] - sums[1] - (sums[1] - sums[0]),
			EDGES * (GPD_GRAPH_EDGE_COST + sizeof(uint32_t)),
			EDGES * (GPD_GRAPH_EDGE_COST + 2 * sizeof(uint32_t)));
}

static void
a_remade_graph_is_charged_twice_until_the_old_one_has_ended(void **state)
{
	uint64_t one;

	add_empty(NULL, 0);
	assert_int_equal(make(PLAN), CUDA_SUCCESS);
	one = charged();
	assert_int_equal(remake(PLAN), CUDA_SUCCESS);
	assert_int_equal(fake_execs, 2);
	assert_in_range(charged(), one + GPD_GRAPH_NODE_COST, one + 2 * GPD_GRAPH_NODE_COST);
	fake_run_markers(&fake, -1);
	assert_int_equal(fake_execs, 1);
	assert_int_equal(charged(), one);
}

static void
a_graph_that_is_built_anew_is_charged_with_the_old_one(void **state)
{
	uint64_t one;

	load_image();
	add_kernel(GP_KERNEL(IMAGE, ZEBRA), 0);
	assert_int_equal(make(PLAN), CUDA_SUCCESS);
	one = charged();
	/* The image has another library from now on. */
	fake.session.kernels_changed++;
	assert_int_equal(launch(PLAN), CUDA_SUCCESS);
	assert_int_equal(fake_execs, 2);
	assert_in_range(charged(), one + GPD_GRAPH_NODE_COST, one + 2 * GPD_GRAPH_NODE_COST);
	fake_run_markers(&fake, -1);
	assert_int_equal(fake_execs, 1);
	assert_int_equal(charged(), one);
	assert_int_equal(launch(PLAN), CUDA_SUCCESS);
	assert_int_equal(fake_count_calls("cuGraphInstantiate"), 2);
}

/* Room for what every session may have, and for so many nodes. */
static void
limit_to(uint32_t nodes)
{
	fake.ledger->host_max = 2 * (uint64_t)nodes * GPD_GRAPH_NODE_COST;
}

static void
what_leaves_makes_room_for_what_comes(void **state)
{
	const uint32_t nodes = 3 * GPD_HOST_MIN / GPD_GRAPH_NODE_COST / 4;

	limit_to(0);
	for (uint32_t i = 0; i < nodes; i++)
		add_empty(NULL, 0);
	for (int i = 0; i < 3; i++) {
		fake_forget_calls();
		assert_int_equal(make(PLAN), CUDA_SUCCESS);
		fake_forget_calls();
		assert_int_equal(make(PLAN + 1), CUDA_ERROR_OUT_OF_MEMORY);
		assert_string_equal(fake_calls, "");
		assert_int_equal(remake(PLAN), CUDA_SUCCESS);
		assert_int_equal(drop(PLAN), CUDA_SUCCESS);
		assert_in_range(fake_execs, 1, 2);
	}
}

static void
a_graph_that_cannot_be_awaited_is_the_drivers_to_end(void **state)
{
	add_empty(NULL, 0);
	assert_int_equal(make(PLAN), CUDA_SUCCESS);
	fake_fail("marker", CUDA_ERROR_INVALID_VALUE, 0);
	assert_int_equal(drop(PLAN), CUDA_SUCCESS);
	assert_int_equal(fake_execs, 0);
	assert_int_equal(fake_markers(&fake), 0);
}

static void
a_refused_change_is_told_by_every_launch(void **state)
{
	add_fill(FAKE_WINDOW, NULL, 0);
	assert_int_equal(make(PLAN), CUDA_SUCCESS);
	begin_plan();
	add_fill(FAKE_WINDOW + FAKE_GRANULE, NULL, 0);
	assert_int_equal(remake(PLAN), CUDA_ERROR_INVALID_VALUE);
	fake_forget_calls();
	for (int i = 0; i < 3; i++)
		assert_int_equal(launch(PLAN), CUDA_ERROR_INVALID_VALUE);
	assert_string_equal(fake_calls, "");
	fake_fail("cuGraphInstantiate", CUDA_ERROR_OUT_OF_MEMORY, 0);
	begin_plan();
	add_fill(FAKE_WINDOW, NULL, 0);
	assert_int_equal(remake(PLAN), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(launch(PLAN), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(remake(PLAN), CUDA_SUCCESS);
	assert_int_equal(launch(PLAN), CUDA_SUCCESS);
	assert_int_equal(fake_count_calls("cuGraphLaunch"), 1);
}

/* Until it is given something. */
static void
a_refused_graph_that_nobody_waits_for_is_told_by_every_launch(void **state)
{
	assert_int_equal(put(PLAN), CUDA_ERROR_INVALID_VALUE);
	add_fill(FAKE_WINDOW + FAKE_GRANULE, NULL, 0);
	assert_int_equal(put(PLAN + 1), CUDA_ERROR_INVALID_VALUE);
	begin_plan();
	add_fill(FAKE_WINDOW, NULL, 0);
	for (uint32_t name = PLAN; name < PLAN + 2; name++) {
		assert_int_equal(launch(name), CUDA_ERROR_INVALID_VALUE);
		assert_int_equal(launch(name), CUDA_ERROR_INVALID_VALUE);
		assert_int_equal(remake(name), CUDA_SUCCESS);
		assert_int_equal(launch(name), CUDA_SUCCESS);
		assert_int_equal(drop(name), CUDA_SUCCESS);
	}
	assert_int_equal(put(PLAN), CUDA_SUCCESS);
	assert_int_equal(launch(PLAN), CUDA_SUCCESS);
	assert_int_equal(fake_count_calls("cuGraphLaunch"), 3);
}

static void
is_refused(CUresult wanted)
{
	const uint64_t before = charged();

	fake_forget_calls();
	assert_int_equal(make(PLAN), wanted);
	assert_null(gpd_handle_get(&fake.session.handles, GPD_KIND_GRAPH_PLAN, PLAN));
	assert_int_equal(fake_execs, 0);
	assert_int_equal(fake_graphs, 0);
	assert_in_range(charged(), before, before + GPD_HANDLE_CHUNK * sizeof(void *));
	begin_plan();
}

static void
memory_of_others_is_refused(void **state)
{
	add_fill(FAKE_WINDOW + FAKE_GRANULE - 32, NULL, 0);
	is_refused(CUDA_ERROR_INVALID_VALUE);
	add_fill(FAKE_WINDOW - 4096, NULL, 0);
	is_refused(CUDA_ERROR_INVALID_VALUE);
	add_fill(UINT64_MAX - 3, NULL, 0);
	is_refused(CUDA_ERROR_INVALID_VALUE);
	add_copy(FAKE_WINDOW, FAKE_WINDOW + FAKE_WINDOW_SIZE);
	is_refused(CUDA_ERROR_INVALID_VALUE);
	add_copy(FAKE_WINDOW + FAKE_GRANULE, FAKE_WINDOW);
	is_refused(CUDA_ERROR_INVALID_VALUE);
}

static void
kernels_of_no_image_are_refused(void **state)
{
	load_image();
	add_kernel(GP_KERNEL(IMAGE, 2), 0);
	is_refused(CUDA_ERROR_INVALID_HANDLE);
	add_kernel(GP_KERNEL(IMAGE + 1, 0), 0);
	is_refused(CUDA_ERROR_INVALID_HANDLE);
	add_kernel(UINT64_MAX, 0);
	is_refused(CUDA_ERROR_INVALID_HANDLE);
	/* "ant" reads twelve bytes. */
	add_kernel(GP_KERNEL(IMAGE, 0), 8);
	is_refused(CUDA_ERROR_INVALID_VALUE);
}

static void
what_is_no_plan_is_refused(void **state)
{
	const uint32_t itself[] = { 0, 0, 0, 0, 0, 1, 0, 0, 0, 0 };
	uint8_t byte = 0;

	/* The second node depends on itself, so there would be a cycle. */
	add_empty(NULL, 0);
	add_empty(&itself[5], 1);
	is_refused(CUDA_ERROR_INVALID_VALUE);
	assert_non_null(gp_graph_write(&writer, GP_CALL_gpMemoryUnmap, NULL, 0, 64));
	is_refused(CUDA_ERROR_INVALID_VALUE);
	assert_non_null(gp_graph_write(&writer, GP_CALL_gpFill, NULL, 0, 8));
	is_refused(CUDA_ERROR_INVALID_VALUE);
	bring_bulk(&byte, 1);
	assert_int_equal(
		gpd_gpGraphMake(&fake.session, &(struct gp_args_gpGraphMake){ FAKE_CONTEXT, PLAN }),
		CUDA_ERROR_INVALID_VALUE);
	is_refused(CUDA_ERROR_INVALID_VALUE);
}

static void
a_plan_without_bytes_is_refused_and_one_of_too_many_ends_the_session(void **state)
{
	uint8_t *large = test_calloc(1, GP_GRAPH_PLAN_MAX + 8);

	begin_plan();
	is_refused(CUDA_ERROR_INVALID_VALUE);
	assert_string_equal(fake.violation, "");
	bring_bulk(large, GP_GRAPH_PLAN_MAX + 8);
	assert_int_equal(
		gpd_gpGraphMake(&fake.session, &(struct gp_args_gpGraphMake){ FAKE_CONTEXT, PLAN }),
		CUDA_ERROR_INVALID_VALUE);
	assert_string_not_equal(fake.violation, "");
	assert_int_equal(fake.session.bulk_left, 0);
	test_free(large);
}

static void
a_million_nodes_are_charged_before_the_driver_hears_of_them(void **state)
{
	for (uint32_t i = 0; i < MANY; i++)
		add_empty(NULL, 0);
	limit_to(MANY / 2);
	is_refused(CUDA_ERROR_OUT_OF_MEMORY);
	assert_string_equal(fake_calls, "");
}

static void
names_are_those_of_graphs(void **state)
{
	add_empty(NULL, 0);
	assert_int_equal(remake(PLAN), CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(launch(PLAN), CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(make(0), CUDA_ERROR_INVALID_HANDLE);
	assert_string_not_equal(fake.violation, "");
	fake.violation[0] = '\0';
	assert_int_equal(make(PLAN), CUDA_SUCCESS);
	assert_int_equal(make(PLAN), CUDA_ERROR_INVALID_HANDLE);
	assert_string_not_equal(fake.violation, "");
	assert_int_equal(launch(PLAN), CUDA_SUCCESS);
	bring_bulk(writer.memory, writer.size);
	assert_int_equal(gpd_gpGraphMake(&fake.session, &(struct gp_args_gpGraphMake){ 77, PLAN }),
			 CUDA_ERROR_INVALID_CONTEXT);
	assert_int_equal(fake_execs, 1);
}

static void
what_kernels_may_launch_stays_one_executable(void **state)
{
	uint64_t exec, one, none;

	load_image();
	add_kernel(GP_KERNEL(IMAGE, ZEBRA), 0);
	fake_fail("cuGraphUpload", CUDA_ERROR_OUT_OF_MEMORY, 0);
	assert_int_equal(make_launchable(PLAN, &exec), CUDA_ERROR_OUT_OF_MEMORY);
	fake_run_markers(&fake, -1);
	assert_int_equal(fake_execs, 0);
	none = charged();
	fake_forget_calls();
	assert_int_equal(make_launchable(PLAN, &exec), CUDA_SUCCESS);
	assert_int_not_equal(exec, 0);
	one = charged();
	assert_int_equal(upload(PLAN), CUDA_SUCCESS);
	assert_int_equal(remake(PLAN), CUDA_SUCCESS);
	fake.session.kernels_changed++;
	assert_int_equal(launch(PLAN), CUDA_SUCCESS);
	assert_int_equal(launch(PLAN), CUDA_SUCCESS);
	assert_string_equal(fake_calls, "cuGraphCreate\n"
					"cuGraphAddKernelNode behind 0: zebra\n"
					"cuGraphInstantiate with 4\n"
					"cuGraphUpload\n"
					"cuGraphUpload\n"
					"cuGraphCreate\n"
					"cuGraphAddKernelNode behind 0: zebra\n"
					"cuGraphExecUpdate\n"
					"cuGraphCreate\n"
					"cuGraphAddKernelNode behind 0: zebra\n"
					"cuGraphExecUpdate\n"
					"cuGraphLaunch\n"
					"cuGraphLaunch\n");
	assert_int_equal(fake_execs, 1);
	assert_int_equal(fake_graphs, 0);
	assert_int_equal(charged(), one);
	assert_int_equal(drop(PLAN), CUDA_SUCCESS);
	fake_run_markers(&fake, -1);
	assert_int_equal(fake_execs, 0);
	assert_int_equal(charged(), none);
}

/* It cannot become another one, but what it was before it is no more, either. */
static void
what_kernels_may_launch_becomes_nothing_else(void **state)
{
	uint64_t exec, one;

	add_fill(FAKE_WINDOW, NULL, 0);
	assert_int_equal(make_launchable(PLAN, &exec), CUDA_SUCCESS);
	one = charged();
	add_fill(FAKE_WINDOW, NULL, 0);
	assert_int_equal(remake(PLAN), CUDA_ERROR_INVALID_VALUE);
	begin_plan();
	add_fill(FAKE_WINDOW + FAKE_WINDOW_SIZE, NULL, 0);
	assert_int_equal(remake(PLAN), CUDA_ERROR_INVALID_VALUE);
	fake_fail("cuGraphExecUpdate", CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, 0);
	begin_plan();
	add_fill(FAKE_WINDOW, NULL, 0);
	assert_int_equal(remake(PLAN), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
	assert_int_equal(launch(PLAN), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
	assert_int_equal(upload(PLAN), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
	assert_int_equal(charged(), one);
	assert_int_equal(fake_graphs, 0);
	assert_int_equal(remake(PLAN), CUDA_SUCCESS);
	assert_int_equal(upload(PLAN), CUDA_SUCCESS);
	assert_int_equal(upload(PLAN + 1), CUDA_ERROR_INVALID_HANDLE);
}

static void
graphs_end_with_their_context(void **state)
{
	struct gpd_context other = { 0 };

	add_empty(NULL, 0);
	assert_int_equal(make(PLAN), CUDA_SUCCESS);
	gpd_graph_forget_context(&fake.session, &other);
	assert_int_equal(launch(PLAN), CUDA_SUCCESS);
	gpd_graph_forget_context(&fake.session, &fake.context);
	assert_int_equal(launch(PLAN), CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(fake_execs, 1);
	fake_run_markers(&fake, -1);
	assert_int_equal(fake_execs, 0);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_graph_is_built_as_it_was_sent),
		TEST(a_dropped_graph_is_charged_until_the_driver_has_ended_it),
		TEST(edges_are_charged),
		TEST(a_remade_graph_is_charged_twice_until_the_old_one_has_ended),
		TEST(a_graph_that_is_built_anew_is_charged_with_the_old_one),
		TEST(what_leaves_makes_room_for_what_comes),
		TEST(a_graph_that_cannot_be_awaited_is_the_drivers_to_end),
		TEST(a_refused_change_is_told_by_every_launch),
		TEST(a_refused_graph_that_nobody_waits_for_is_told_by_every_launch),
		TEST(memory_of_others_is_refused),
		TEST(kernels_of_no_image_are_refused),
		TEST(what_is_no_plan_is_refused),
		TEST(a_plan_without_bytes_is_refused_and_one_of_too_many_ends_the_session),
		TEST(a_million_nodes_are_charged_before_the_driver_hears_of_them),
		TEST(names_are_those_of_graphs),
		TEST(what_kernels_may_launch_stays_one_executable),
		TEST(what_kernels_may_launch_becomes_nothing_else),
		TEST(graphs_end_with_their_context),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
