/* SPDX-License-Identifier: Apache-2.0 */
/* Plans and names that are wrong, and graphs that are too large. */
#include "tests/unit/server/graph_fixture.h"

#define MANY 1000000

static void
is_refused(CUresult wanted)
{
	const uint64_t before = charged();

	fake_driver_clear_calls();
	assert_int_equal(make(PLAN), wanted);
	assert_null(gpd_handle_get(&fake.session.handles, GPD_KIND_GRAPH_PLAN, PLAN));
	assert_int_equal(fake_driver_execs, 0);
	assert_int_equal(fake_driver_graphs, 0);
	assert_in_range(charged(), before, before + GPD_HANDLE_CHUNK * sizeof(void *));
	begin_plan();
}

TEST(memory_of_others_is_refused)
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

TEST(kernels_of_no_image_are_refused)
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

TEST(what_is_no_plan_is_refused)
{
	const uint32_t itself[] = { 0, 0, 0, 0, 0, 1, 0, 0, 0, 0 };
	uint8_t byte = 0;

	/* The second node depends on itself, so there would be a cycle. */
	add_empty(NULL, 0);
	add_empty(&itself[5], 1);
	is_refused(CUDA_ERROR_INVALID_VALUE);
	assert_non_null(gp_graph_write_node(&writer, GP_CALL_gpMemoryUnmap, NULL, 0, 64));
	is_refused(CUDA_ERROR_INVALID_VALUE);
	assert_non_null(gp_graph_write_node(&writer, GP_CALL_gpFill, NULL, 0, 8));
	is_refused(CUDA_ERROR_INVALID_VALUE);
	bring_bulk(&byte, 1);
	assert_int_equal(
		gpd_gpGraphMake(&fake.session, &(struct gp_args_gpGraphMake){ FAKE_CONTEXT, PLAN }),
		CUDA_ERROR_INVALID_VALUE);
	is_refused(CUDA_ERROR_INVALID_VALUE);
}

TEST(a_plan_without_bytes_is_refused_and_one_of_too_many_ends_the_session)
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
	assert_int_equal(fake.session.current.bulk_left, 0);
	test_free(large);
}

TEST(a_million_nodes_are_charged_before_the_driver_hears_of_them)
{
	for (uint32_t i = 0; i < MANY; i++)
		add_empty(NULL, 0);
	limit_to(MANY / 2);
	is_refused(CUDA_ERROR_OUT_OF_MEMORY);
	assert_string_equal(fake_driver_calls, "");
}

TEST(names_are_those_of_graphs)
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
	assert_int_equal(fake_driver_execs, 1);
}

UNIT_TEST_MAIN(NULL, NULL)
