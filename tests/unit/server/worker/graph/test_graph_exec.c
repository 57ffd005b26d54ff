/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs that a session's client sends: built, launched, and charged for until the driver has ended
 * them. */
#include "tests/unit/server/graph_fixture.h"

TEST(a_graph_is_built_as_it_was_sent)
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
	assert_string_equal(fake_driver_calls, "cuGraphCreate\n"
					       "cuGraphAddMemsetNode behind 0: 16 x 1\n"
					       "cuGraphAddMemcpyNode behind 0: 64 x 1\n"
					       "cuGraphAddEmptyNode behind 2\n"
					       "cuGraphAddKernelNode behind 0: zebra\n"
					       "cuGraphInstantiate\n"
					       "cuGraphLaunch\n"
					       "cuGraphLaunch\n");
	assert_string_equal(fake.session.progress.kernel, "zebra");
}

/* Device 0 has the priorities from 0, the least, to -5. */
TEST(a_kernel_nodes_priority_is_that_of_the_session)
{
	static const char node[] = "cuGraphKernelNodeSetAttribute priority 0\n";
	const CUlaunchAttribute attribute = { .id = CU_LAUNCH_ATTRIBUTE_PRIORITY,
					      .value.priority = -5 };

	load_image();
	gpd_devices.all[0].priority_least = 0;
	gpd_devices.all[0].priority_greatest = -5;
	fake.session.account.entry->priority = 1;
	add_kernel_with(GP_KERNEL(IMAGE, ZEBRA), 0,
			(struct gp_bytes){ &attribute, sizeof(attribute) });
	assert_int_equal(make(PLAN), CUDA_SUCCESS);
	assert_int_equal(fake_driver_count_calls(node), 1);
	assert_int_equal(remake(PLAN), CUDA_SUCCESS);
	assert_int_equal(fake_driver_count_calls(node), 2);
}

TEST(a_dropped_graph_is_charged_until_the_driver_has_ended_it)
{
	uint64_t before;

	add_empty(NULL, 0);
	assert_int_equal(make(PLAN), CUDA_SUCCESS);
	assert_int_equal(drop(PLAN), CUDA_SUCCESS);
	fake_session_run_markers(&fake, -1);
	before = charged();
	assert_int_equal(make(PLAN), CUDA_SUCCESS);
	assert_int_equal(launch(PLAN), CUDA_SUCCESS);
	assert_int_equal(drop(PLAN), CUDA_SUCCESS);
	assert_int_equal(drop(PLAN), CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(fake_driver_execs, 1);
	assert_in_range(charged(), before + GPD_GRAPH_NODE_COST, before + 2 * GPD_GRAPH_NODE_COST);
	fake_session_run_markers(&fake, -1);
	assert_int_equal(fake_driver_execs, 0);
	assert_int_equal(charged(), before);
}

/* The third graph has all edges that there may be. */
TEST(edges_are_charged)
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

TEST(a_remade_graph_is_charged_twice_until_the_old_one_has_ended)
{
	uint64_t one;

	add_empty(NULL, 0);
	assert_int_equal(make(PLAN), CUDA_SUCCESS);
	one = charged();
	assert_int_equal(remake(PLAN), CUDA_SUCCESS);
	assert_int_equal(fake_driver_execs, 2);
	assert_in_range(charged(), one + GPD_GRAPH_NODE_COST, one + 2 * GPD_GRAPH_NODE_COST);
	fake_session_run_markers(&fake, -1);
	assert_int_equal(fake_driver_execs, 1);
	assert_int_equal(charged(), one);
}

TEST(a_graph_that_is_built_anew_is_charged_with_the_old_one)
{
	uint64_t one;

	load_image();
	add_kernel(GP_KERNEL(IMAGE, ZEBRA), 0);
	assert_int_equal(make(PLAN), CUDA_SUCCESS);
	one = charged();
	/* The image has another library from here on. */
	fake.session.modules->kernels_changed++;
	assert_int_equal(launch(PLAN), CUDA_SUCCESS);
	assert_int_equal(fake_driver_execs, 2);
	assert_in_range(charged(), one + GPD_GRAPH_NODE_COST, one + 2 * GPD_GRAPH_NODE_COST);
	fake_session_run_markers(&fake, -1);
	assert_int_equal(fake_driver_execs, 1);
	assert_int_equal(charged(), one);
	assert_int_equal(launch(PLAN), CUDA_SUCCESS);
	assert_int_equal(fake_driver_count_calls("cuGraphInstantiate"), 2);
}

TEST(what_leaves_makes_room_for_what_comes)
{
	const uint32_t nodes = 3 * GPD_HOST_MIN / GPD_GRAPH_NODE_COST / 4;

	limit_to(0);
	for (uint32_t i = 0; i < nodes; i++)
		add_empty(NULL, 0);
	for (int i = 0; i < 3; i++) {
		fake_driver_clear_calls();
		assert_int_equal(make(PLAN), CUDA_SUCCESS);
		fake_driver_clear_calls();
		assert_int_equal(make(PLAN + 1), CUDA_ERROR_OUT_OF_MEMORY);
		assert_string_equal(fake_driver_calls, "");
		assert_int_equal(remake(PLAN), CUDA_SUCCESS);
		assert_int_equal(drop(PLAN), CUDA_SUCCESS);
		assert_in_range(fake_driver_execs, 1, 2);
	}
}

TEST(a_graph_that_cannot_be_awaited_is_the_drivers_to_end)
{
	add_empty(NULL, 0);
	assert_int_equal(make(PLAN), CUDA_SUCCESS);
	fake_driver_fail("marker", CUDA_ERROR_INVALID_VALUE, 0);
	assert_int_equal(drop(PLAN), CUDA_SUCCESS);
	assert_int_equal(fake_driver_execs, 0);
	assert_int_equal(fake_session_markers(&fake), 0);
}

TEST(a_refused_change_is_told_by_every_launch)
{
	add_fill(FAKE_WINDOW, NULL, 0);
	assert_int_equal(make(PLAN), CUDA_SUCCESS);
	begin_plan();
	add_fill(FAKE_WINDOW + FAKE_GRANULE, NULL, 0);
	assert_int_equal(remake(PLAN), CUDA_ERROR_INVALID_VALUE);
	fake_driver_clear_calls();
	for (int i = 0; i < 3; i++)
		assert_int_equal(launch(PLAN), CUDA_ERROR_INVALID_VALUE);
	assert_string_equal(fake_driver_calls, "");
	fake_driver_fail("cuGraphInstantiate", CUDA_ERROR_OUT_OF_MEMORY, 0);
	begin_plan();
	add_fill(FAKE_WINDOW, NULL, 0);
	assert_int_equal(remake(PLAN), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(launch(PLAN), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(remake(PLAN), CUDA_SUCCESS);
	assert_int_equal(launch(PLAN), CUDA_SUCCESS);
	assert_int_equal(fake_driver_count_calls("cuGraphLaunch"), 1);
}

/* Until it is given something. */
TEST(a_refused_graph_that_nobody_waits_for_is_told_by_every_launch)
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
	assert_int_equal(fake_driver_count_calls("cuGraphLaunch"), 3);
}

TEST(what_kernels_may_launch_stays_one_executable)
{
	uint64_t exec, one, none;

	load_image();
	add_kernel(GP_KERNEL(IMAGE, ZEBRA), 0);
	fake_driver_fail("cuGraphUpload", CUDA_ERROR_OUT_OF_MEMORY, 0);
	assert_int_equal(make_launchable(PLAN, &exec), CUDA_ERROR_OUT_OF_MEMORY);
	fake_session_run_markers(&fake, -1);
	assert_int_equal(fake_driver_execs, 0);
	none = charged();
	fake_driver_clear_calls();
	assert_int_equal(make_launchable(PLAN, &exec), CUDA_SUCCESS);
	assert_int_not_equal(exec, 0);
	one = charged();
	assert_int_equal(upload(PLAN), CUDA_SUCCESS);
	assert_int_equal(remake(PLAN), CUDA_SUCCESS);
	fake.session.modules->kernels_changed++;
	assert_int_equal(launch(PLAN), CUDA_SUCCESS);
	assert_int_equal(launch(PLAN), CUDA_SUCCESS);
	assert_string_equal(fake_driver_calls, "cuGraphCreate\n"
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
	assert_int_equal(fake_driver_execs, 1);
	assert_int_equal(fake_driver_graphs, 0);
	assert_int_equal(charged(), one);
	assert_int_equal(drop(PLAN), CUDA_SUCCESS);
	fake_session_run_markers(&fake, -1);
	assert_int_equal(fake_driver_execs, 0);
	assert_int_equal(charged(), none);
}

/* It cannot become another one, but what it was before it is no more, either. */
TEST(what_kernels_may_launch_becomes_nothing_else)
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
	fake_driver_fail("cuGraphExecUpdate", CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, 0);
	begin_plan();
	add_fill(FAKE_WINDOW, NULL, 0);
	assert_int_equal(remake(PLAN), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
	assert_int_equal(launch(PLAN), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
	assert_int_equal(upload(PLAN), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
	assert_int_equal(charged(), one);
	assert_int_equal(fake_driver_graphs, 0);
	assert_int_equal(remake(PLAN), CUDA_SUCCESS);
	assert_int_equal(upload(PLAN), CUDA_SUCCESS);
	assert_int_equal(upload(PLAN + 1), CUDA_ERROR_INVALID_HANDLE);
}

TEST(graphs_end_with_their_context)
{
	struct gpd_context other = { 0 };

	add_empty(NULL, 0);
	assert_int_equal(make(PLAN), CUDA_SUCCESS);
	gpd_graph_destroy_context(&fake.session, &other);
	assert_int_equal(launch(PLAN), CUDA_SUCCESS);
	gpd_graph_destroy_context(&fake.session, &fake.context);
	assert_int_equal(launch(PLAN), CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(fake_driver_execs, 1);
	fake_session_run_markers(&fake, -1);
	assert_int_equal(fake_driver_execs, 0);
}

UNIT_TEST_MAIN(NULL, NULL)
