/* SPDX-License-Identifier: Apache-2.0 */
/* Images and the launches of their kernels. */
#include "gpd_calls.h"
#include "image/fatbin.h"
#include "protocol/image_info.h"
#include "server/worker/device/device.h"
#include "server/worker/device/quiesce_jobs.h"
#include "server/worker/image_cache/image_cache.h"
#include "server/worker/issue/issue.h"
#include "server/worker/memory/memory.h"
#include "server/worker/module/image.h"
#include "server/worker/module/launch.h"
#include "tests/test.h"
#include "tests/unit/server/fake_session.h"

#include <openssl/evp.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define IMAGE 8
/* By name: "ant" (a pointer and an int), then "zebra" (nothing). */
#define ANT 0
#define ZEBRA 1

static struct fake_session fake;
static void *flat;
static size_t flat_size;
static uint8_t flat_sha256[GPD_SHA256_SIZE];

static int
make_image(void **state)
{
	struct gp_image *image;

	/* Code with state: each image has a library of its own. */
	assert_int_equal(gp_image_create(".version 8.0\n.const .u32 few;\n", &image), 0);
	assert_int_equal(gp_image_flatten(image, NULL, &flat, &flat_size), 0);
	gp_image_destroy(image);
	EVP_Digest(flat, flat_size, flat_sha256, NULL, EVP_sha256(), NULL);
	return 0;
}

static int
free_image(void **state)
{
	free(flat);
	return 0;
}

static int
setup(void **state)
{
	fake_session_create(&fake);
	gpd_image_cache_start("", &(struct gpd_image_cache_limits){ 0, 0 });
	return gpd_memory_create(&fake.session);
}

static int
teardown(void **state)
{
	fake_session_run_markers(&fake, -1);
	gpd_image_destroy_all(&fake.session);
	gpd_quiesce_jobs_wait();
	gpd_memory_unmap_all(&fake.session);
	gpd_memory_destroy(&fake.session);
	fake_session_destroy(&fake);
	gpd_image_cache_stop();
	return fake_driver_libraries;
}

static CUresult
load_with(bool tail, uint32_t name, struct gp_bytes options, struct gp_reply_gpImageLoad *reply)
{
	const struct gp_args_gpImageLoad args = {
		.context = FAKE_CONTEXT,
		.image = name,
		.sha256 = { flat_sha256, sizeof(flat_sha256) },
		.size = flat_size,
		.options = options,
	};

	memset(reply, 0, sizeof(*reply));
	fake.bulk = flat;
	fake.session.current.bulk_left = tail ? flat_size : 0;
	return gpd_gpImageLoad(&fake.session, &args, reply);
}

static void
drop(struct gp_reply_gpImageLoad *reply)
{
	free((void *)reply->info.data);
	free((void *)reply->log.data);
}

static void
load(void)
{
	struct gp_reply_gpImageLoad reply;

	assert_int_equal(load_with(true, IMAGE, (struct gp_bytes){ 0 }, &reply), CUDA_SUCCESS);
	drop(&reply);
	fake_driver_clear_calls();
}

#define TEST(test) UNIT_TEST_WITH(test, setup, teardown)

TEST(an_image_is_asked_for_until_it_is_there)
{
	struct gp_reply_gpImageLoad reply;

	assert_int_equal(load_with(false, IMAGE, (struct gp_bytes){ 0 }, &reply), CUDA_SUCCESS);
	assert_int_equal(reply.missing, 1);
	assert_int_equal(fake_driver_libraries, 0);

	load();
	assert_int_equal(load_with(false, IMAGE + 1, (struct gp_bytes){ 0 }, &reply), CUDA_SUCCESS);
	assert_int_equal(reply.missing, 0);
	assert_int_equal(fake_driver_libraries, 2);
	drop(&reply);
}

TEST(the_client_learns_all_kernels_by_name)
{
	struct gp_reply_gpImageLoad reply;
	struct gp_image_info *info;

	load_with(true, IMAGE, (struct gp_bytes){ 0 }, &reply);
	assert_int_equal(gp_image_info_decode(&info, reply.info), 0);

	assert_int_equal(info->kernel_count, 2);
	assert_string_equal(info->kernels[ANT].name, "ant");
	assert_string_equal(info->kernels[ZEBRA].name, "zebra");
	assert_int_equal(info->kernels[ANT].param_count, 2);
	assert_int_equal(info->kernels[ANT].params[1].offset, 8);
	assert_int_equal(info->kernels[ANT].params[1].size, 4);
	assert_int_equal(info->kernels[ZEBRA].param_count, 0);
	assert_int_equal(info->kernels[ANT].attributes_known, 0xffff);
	assert_int_equal(info->kernels[ANT].attributes[4], 1004);
	gp_image_info_destroy(info);
	drop(&reply);
}

TEST(a_compilers_complaint_comes_back)
{
	struct gp_reply_gpImageLoad reply;

	fake_driver_fail("cuLibraryLoadData", CUDA_ERROR_INVALID_PTX, 0);
	assert_int_equal(load_with(true, IMAGE, (struct gp_bytes){ 0 }, &reply),
			 CUDA_ERROR_INVALID_PTX);
	assert_memory_equal(reply.log.data, "line 1: it makes no sense", reply.log.size);
	assert_null(gpd_handle_get(&fake.session.handles, GPD_KIND_IMAGE, IMAGE));
	drop(&reply);
}

TEST(options_with_addresses_do_not_reach_the_driver)
{
	const struct {
		uint32_t option, zero;
		uint64_t value;
	} options[] = {
		{ CU_JIT_MAX_REGISTERS, 0, 32 },
		{ CU_JIT_INFO_LOG_BUFFER, 0, 0x4141414141414141 },
	}, others[] = {
		{ CU_JIT_GLOBAL_SYMBOL_ADDRESSES, 0, 0x4141414141414141 },
		{ 4711, 0, 1 },
		{ CU_JIT_MAX_REGISTERS, 1, 1 },
	};
	struct gp_reply_gpImageLoad reply;

	assert_int_equal(
		load_with(true, IMAGE, (struct gp_bytes){ options, sizeof(options) }, &reply),
		CUDA_SUCCESS);
	assert_int_equal(fake_driver_count_calls("cuLibraryLoadData options 5"), 1);
	drop(&reply);
	assert_int_equal(load_with(true, IMAGE + 1, (struct gp_bytes){ options, 7 }, &reply),
			 CUDA_ERROR_INVALID_VALUE);
	for (int i = 0; i < 3; i++)
		assert_int_equal(
			load_with(true, IMAGE + 1, (struct gp_bytes){ &others[i], 16 }, &reply),
			CUDA_ERROR_NOT_SUPPORTED);
	assert_int_equal(fake_driver_count_calls("cuLibraryLoadData options 5"), 1);
}

TEST(an_image_that_is_not_what_its_hash_says_ends_the_session)
{
	struct gp_reply_gpImageLoad reply;

	flat_sha256[5] ^= 1;
	assert_int_equal(load_with(true, IMAGE, (struct gp_bytes){ 0 }, &reply),
			 CUDA_ERROR_INVALID_IMAGE);
	flat_sha256[5] ^= 1;
	assert_string_not_equal(fake.violation, "");
	assert_int_equal(fake_driver_libraries, 0);
}

TEST(an_image_leaves_when_earlier_work_is_done)
{
	const struct gp_args_gpImageUnload args = { .image = IMAGE };

	load();
	assert_int_equal(gpd_gpImageUnload(&fake.session, &args), CUDA_SUCCESS);
	assert_int_equal(gpd_gpImageUnload(&fake.session, &args), CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(fake_driver_libraries, 1);

	fake_session_run_markers(&fake, -1);
	gpd_quiesce_jobs_wait();
	assert_int_equal(fake_driver_libraries, 0);
}

TEST(a_contexts_images_stay_and_their_variables_start_anew)
{
	struct gp_args_gpImageGlobal args = { FAKE_CONTEXT, IMAGE, { "table", 5 } };
	struct gp_reply_gpImageGlobal reply;

	load();
	assert_int_equal(gpd_gpImageGlobal(&fake.session, &args, &reply), CUDA_SUCCESS);
	gpd_image_invalidate_context(&fake.session, &fake.context);
	assert_non_null(gpd_handle_get(&fake.session.handles, GPD_KIND_IMAGE, IMAGE));
	assert_false(gpd_memory_accessible(&fake.session, 0x700000, 4));
	assert_int_equal(fake_session_allocated(&fake, 0), 0);
	assert_int_equal(fake_driver_count_calls("cuLibraryUnload"), 0);

	assert_int_equal(gpd_gpImageGlobal(&fake.session, &args, &reply), CUDA_SUCCESS);
	assert_int_equal(fake_driver_count_calls("cuLibraryUnload"), 1);
	assert_int_equal(fake_driver_libraries, 1);
	assert_true(gpd_memory_accessible(&fake.session, 0x700000, 4));
}

TEST(a_variable_may_be_touched_once_it_was_asked_for)
{
	struct gp_args_gpImageGlobal args = { FAKE_CONTEXT, IMAGE, { "table", 5 } };
	struct gp_reply_gpImageGlobal reply;

	load();
	assert_false(gpd_memory_accessible(&fake.session, 0x700000, 4));
	assert_int_equal(gpd_gpImageGlobal(&fake.session, &args, &reply), CUDA_SUCCESS);
	assert_int_equal(gpd_gpImageGlobal(&fake.session, &args, &reply), CUDA_SUCCESS);
	assert_int_equal(reply.address, 0x700000);
	assert_int_equal(reply.size, 256);

	assert_true(gpd_memory_accessible(&fake.session, 0x700000, 256));
	assert_false(gpd_memory_accessible(&fake.session, 0x700001, 256));
	assert_false(gpd_memory_accessible(&fake.session, 0x6fffff, 1));
	assert_int_equal(fake_session_allocated(&fake, 0), 256);

	args.name = (struct gp_bytes){ "tables", 6 };
	assert_int_equal(gpd_gpImageGlobal(&fake.session, &args, &reply), CUDA_ERROR_NOT_FOUND);
	gpd_gpImageUnload(&fake.session, &(struct gp_args_gpImageUnload){ IMAGE });
	assert_false(gpd_memory_accessible(&fake.session, 0x700000, 4));
	/* Work may still use it. */
	assert_int_equal(fake_session_allocated(&fake, 0), 256);
	fake_session_run_markers(&fake, -1);
	gpd_quiesce_jobs_wait();
	assert_int_equal(fake_session_allocated(&fake, 0), 0);
}

static _Atomic bool held;

static void
stand_still(void *unused)
{
	while (held)
		(void)usleep(1000);
}

static void
ask_for_table(void)
{
	struct gp_args_gpImageGlobal args = { FAKE_CONTEXT, IMAGE, { "table", 5 } };
	struct gp_reply_gpImageGlobal reply;

	load();
	assert_int_equal(gpd_gpImageGlobal(&fake.session, &args, &reply), CUDA_SUCCESS);
}

TEST(variables_are_charged_until_the_driver_has_unloaded_them)
{
	held = true;
	gpd_quiesce_jobs_add(stand_still, NULL);
	ask_for_table();
	gpd_gpImageUnload(&fake.session, &(struct gp_args_gpImageUnload){ IMAGE });
	fake_session_run_markers(&fake, -1);
	assert_int_equal(fake_session_allocated(&fake, 0), 256);
	assert_int_equal(fake_driver_libraries, 1);
	held = false;
	assert_true(gpd_image_wait_unloaded(&fake.session));
	assert_int_equal(fake_driver_libraries, 0);
	assert_int_equal(fake_session_allocated(&fake, 0), 0);
	assert_int_equal(fake.session.account.entry->pending_frees[0], 0);
	gpd_quiesce_jobs_wait();
	assert_false(gpd_image_wait_unloaded(&fake.session));
}

/* Its line goes with all that it holds. */
TEST(a_session_that_ends_pays_for_no_unloaded_variables)
{
	held = true;
	gpd_quiesce_jobs_add(stand_still, NULL);
	ask_for_table();
	gpd_gpImageUnload(&fake.session, &(struct gp_args_gpImageUnload){ IMAGE });
	fake_session_run_markers(&fake, -1);
	gpd_image_destroy_all(&fake.session);
	assert_int_equal(fake_session_allocated(&fake, 0), 0);
	assert_int_equal(fake_driver_libraries, 1);
	held = false;
	gpd_quiesce_jobs_wait();
	assert_int_equal(fake_driver_libraries, 0);
}

static CUresult
launch_on(uint32_t stream, uint64_t kernel, size_t params_size, struct gp_bytes attributes)
{
	static const uint64_t params[4];
	const struct gp_args_gpLaunch args = {
		.kernel = kernel,
		.grid_x = 1,
		.grid_y = 2,
		.grid_z = 3,
		.block_x = 4,
		.block_y = 5,
		.block_z = 6,
		.shared = 7,
		.stream = stream,
		.attributes = attributes,
		.params = { params, params_size },
	};

	return gpd_gpLaunch(&fake.session, &args);
}

static CUresult
launch(uint64_t kernel, size_t params_size, struct gp_bytes attributes)
{
	return launch_on(FAKE_STREAM, kernel, params_size, attributes);
}

TEST(a_launch_reaches_the_driver_as_it_was_asked_for)
{
	load();
	assert_int_equal(launch(GP_KERNEL(IMAGE, ANT), 12, (struct gp_bytes){ 0 }), CUDA_SUCCESS);
	assert_int_equal(launch(GP_KERNEL(IMAGE, ANT), 12, (struct gp_bytes){ 0 }), CUDA_SUCCESS);

	assert_string_equal(fake_driver_calls,
			    "cuLaunchKernelEx ant 1x2x3 4x5x6 shared 7 attributes 0 params 12\n"
			    "cuLaunchKernelEx ant 1x2x3 4x5x6 shared 7 attributes 0 params 12\n");
	assert_string_equal(fake.session.progress.kernel, "ant");
}

/* On the second stream, as one of many calls that have come. */
static void
hand_over_one(void)
{
	assert_int_equal(launch(GP_KERNEL(IMAGE, ANT), 12, (struct gp_bytes){ 0 }), CUDA_SUCCESS);
	assert_int_equal(
		launch_on(FAKE_OTHER_STREAM, GP_KERNEL(IMAGE, ANT), 12, (struct gp_bytes){ 0 }),
		CUDA_SUCCESS);
	assert_true(fake.session.issue.pending);
}

static void
with_threads(void)
{
	load();
	fake.session.issue = (struct gpd_issue){
		.failed = gpd_launch_failed,
		.closing = &fake.session.closing,
		.sticky = &fake.session.sticky,
		.most = 2,
	};
	gpd_issue_message(&fake.session.issue, true);
}

TEST(launches_on_two_streams_are_left_to_threads)
{
	with_threads();
	for (int i = 0; i < 10; i++)
		hand_over_one();
	gpd_issue_settle(&fake.session.issue);
	assert_int_equal(fake.session.issue.handed, 19);
	assert_int_equal(
		fake_driver_count_calls(
			"cuLaunchKernelEx ant 1x2x3 4x5x6 shared 7 attributes 0 params 12"),
		20);
	gpd_issue_stop(&fake.session.issue);
}

TEST(what_fails_there_is_told_as_of_any_posted_call)
{
	with_threads();
	assert_int_equal(launch(GP_KERNEL(IMAGE, ANT), 12, (struct gp_bytes){ 0 }), CUDA_SUCCESS);
	fake_driver_fail("cuLaunchKernelEx", CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, 0);
	assert_int_equal(
		launch_on(FAKE_OTHER_STREAM, GP_KERNEL(IMAGE, ANT), 12, (struct gp_bytes){ 0 }),
		CUDA_SUCCESS);
	gpd_issue_stop(&fake.session.issue);
	assert_int_equal(fake.session.send.deferred, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
	assert_int_equal(fake.session.send.deferred_call, GP_CALL_gpLaunch);
}

/* Its client waits for the answer, or something of the session's own follows. */
TEST(what_is_waited_for_is_launched_by_the_executor)
{
	with_threads();
	hand_over_one();
	fake.session.trace = (struct gpd_trace *)&fake;
	assert_int_equal(launch(GP_KERNEL(IMAGE, ANT), 12, (struct gp_bytes){ 0 }), CUDA_SUCCESS);
	fake.session.trace = NULL;
	assert_false(fake.session.issue.pending);
	assert_int_equal(fake_driver_count_calls("cuLaunchKernelEx"), 3);

	fake_driver_fail("cuLaunchKernelEx", CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, 0);
	assert_int_equal(gpd_gpLaunchChecked(&fake.session,
					     &(struct gp_args_gpLaunchChecked){
						     .kernel = GP_KERNEL(IMAGE, ZEBRA),
						     .stream = FAKE_OTHER_STREAM,
					     }),
			 CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
	assert_int_equal(fake.session.issue.handed, 1);
	gpd_issue_stop(&fake.session.issue);
}

TEST(a_launch_brings_all_parameters_that_the_kernel_reads)
{
	load();
	assert_int_equal(launch(GP_KERNEL(IMAGE, ANT), 11, (struct gp_bytes){ 0 }),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(launch(GP_KERNEL(IMAGE, ANT), 0, (struct gp_bytes){ 0 }),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(
		launch(GP_KERNEL(IMAGE, ANT), GP_LAUNCH_PARAMS_MAX + 1, (struct gp_bytes){ 0 }),
		CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(launch(GP_KERNEL(IMAGE, ANT), 16, (struct gp_bytes){ 0 }), CUDA_SUCCESS);
	assert_int_equal(launch(GP_KERNEL(IMAGE, ZEBRA), 0, (struct gp_bytes){ 0 }), CUDA_SUCCESS);
	assert_int_equal(fake_driver_count_calls("cuLaunchKernelEx"), 2);
}

TEST(a_kernel_that_is_not_there_is_an_invalid_handle)
{
	load();
	assert_int_equal(launch(GP_KERNEL(IMAGE, 2), 16, (struct gp_bytes){ 0 }),
			 CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(launch(GP_KERNEL(IMAGE + 1, 0), 16, (struct gp_bytes){ 0 }),
			 CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(launch(0, 16, (struct gp_bytes){ 0 }), CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(launch(UINT64_MAX, 16, (struct gp_bytes){ 0 }), CUDA_ERROR_INVALID_HANDLE);
	assert_string_equal(fake_driver_calls, "");
}

static CUresult
launch_attribute(const CUlaunchAttribute *attribute)
{
	return launch(GP_KERNEL(IMAGE, ZEBRA), 0,
		      (struct gp_bytes){ attribute, sizeof(*attribute) });
}

TEST(only_attributes_without_handles_are_passed_on)
{
	CUlaunchAttribute attribute = { .id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
					.value.cooperative = 1 };

	load();
	assert_int_equal(launch_attribute(&attribute), CUDA_SUCCESS);
	assert_int_equal(
		fake_driver_count_calls("cuLaunchKernelEx zebra 1x2x3 4x5x6 shared 7 attributes 1"),
		1);
	attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT;
	assert_int_equal(launch_attribute(&attribute), CUDA_ERROR_NOT_SUPPORTED);
	attribute.id = CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT;
	assert_int_equal(launch_attribute(&attribute), CUDA_ERROR_NOT_SUPPORTED);
	attribute.id = CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE;
	assert_int_equal(launch_attribute(&attribute), CUDA_ERROR_NOT_SUPPORTED);
	attribute.id = (CUlaunchAttributeID)4711;
	assert_int_equal(launch_attribute(&attribute), CUDA_ERROR_NOT_SUPPORTED);
	assert_int_equal(fake_driver_count_calls("cuLaunchKernelEx"), 1);
}

/* Device 0 has the priorities from 0, the least, to -5. */
TEST(a_launchs_priority_is_that_of_the_session)
{
	static const struct {
		uint32_t of_session;
		int wanted;
		const char *passed_on;
	} cases[] = {
		{ 0, -3, "launch priority -3\n" }, { 1, -5, "launch priority 0\n" },
		{ 2, -3, "launch priority -4\n" }, { 2, -5, "launch priority -5\n" },
		{ 2, 0, "launch priority -1\n" },
	};
	CUlaunchAttribute attribute = { .id = CU_LAUNCH_ATTRIBUTE_PRIORITY };

	load();
	gpd_devices.all[0].priority_least = 0;
	gpd_devices.all[0].priority_greatest = -5;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		fake.session.account.entry->priority = cases[i].of_session;
		attribute.value.priority = cases[i].wanted;
		fake_driver_clear_calls();
		assert_int_equal(launch_attribute(&attribute), CUDA_SUCCESS);
		assert_int_equal(fake_driver_count_calls(cases[i].passed_on), 1);
	}
}

TEST(an_access_window_lies_in_the_sessions_memory)
{
	CUlaunchAttribute attribute = { .id = CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW };

	load();
	gpd_memory_map(&fake.session, FAKE_WINDOW, FAKE_GRANULE, 0);
	attribute.value.accessPolicyWindow.base_ptr = (void *)FAKE_WINDOW;
	attribute.value.accessPolicyWindow.num_bytes = FAKE_GRANULE;
	assert_int_equal(launch_attribute(&attribute), CUDA_SUCCESS);
	assert_int_equal(
		fake_driver_count_calls("cuLaunchKernelEx zebra 1x2x3 4x5x6 shared 7 attributes 1"),
		1);
	attribute.value.accessPolicyWindow.num_bytes++;
	assert_int_equal(launch_attribute(&attribute), CUDA_SUCCESS);
	assert_int_equal(
		fake_driver_count_calls("cuLaunchKernelEx zebra 1x2x3 4x5x6 shared 7 attributes 1"),
		1);
	assert_int_equal(
		fake_driver_count_calls("cuLaunchKernelEx zebra 1x2x3 4x5x6 shared 7 attributes 0"),
		1);
}

TEST(a_list_of_attributes_has_a_limit)
{
	CUlaunchAttribute attributes[GPD_LAUNCH_ATTRIBUTES_MAX + 1] = { 0 };
	struct gp_bytes list = { attributes, sizeof(attributes) };

	load();
	assert_int_equal(launch(GP_KERNEL(IMAGE, ZEBRA), 0, list), CUDA_ERROR_INVALID_VALUE);
	list.size -= sizeof(*attributes);
	assert_int_equal(launch(GP_KERNEL(IMAGE, ZEBRA), 0, list), CUDA_SUCCESS);
	list.size -= 1;
	assert_int_equal(launch(GP_KERNEL(IMAGE, ZEBRA), 0, list), CUDA_ERROR_INVALID_VALUE);
}

UNIT_TEST_MAIN(make_image, free_image)
