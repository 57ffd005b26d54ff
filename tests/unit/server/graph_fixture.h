/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fixture for tests of graphs: a fake session (fake_session.h) whose client writes graph plans, and
 * the calls that create, update and launch graphs. A plan is the list of a graph's nodes as it is
 * sent to the worker (protocol/graph_plan.h).
 *
 * The functions add_...() append nodes to the plan, which begin_plan() empties. The call functions
 * send this plan as bulk bytes, and return the result of the call. The teardown checks that no
 * graph is left in the driver.
 * Threads: the test's thread.
 */
#ifndef GRAPH_FIXTURE_H
#define GRAPH_FIXTURE_H

#include "gpd_calls.h"
#include "image/fatbin.h"
#include "protocol/graph_plan.h"
#include "protocol/image_info.h"
#include "server/worker/device/quiesce_jobs.h"
#include "server/worker/graph/graph_build.h"
#include "server/worker/graph/graph_exec.h"
#include "server/worker/image_cache/image_cache.h"
#include "server/worker/memory/memory.h"
#include "server/worker/module/image.h"
#include "server/worker/module/image_library.h"
#include "server/worker/module/library.h"
#include "tests/test.h"
#include "tests/unit/server/fake_session.h"

#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

/* IDs of the plan and of the image that the client uses. */
#define PLAN 4
#define IMAGE 8
/* Index of the kernel "zebra" in the image, whose kernels are sorted by name (ant, zebra). */
#define ZEBRA 1

static struct fake_session fake;
/* The plan. */
static struct gp_graph_writer writer;

/* CMocka setup and teardown of a test; return 0. */
static inline int
setup(void **state)
{
	fake_session_create(&fake);
	gpd_image_cache_start("", &(struct gpd_image_cache_limits){ 0, 0 });
	fake.session.handles.memory.ledger = fake.ledger;
	fake.session.handles.memory.entry = fake.session.account.entry;
	fake.ledger->host_max = UINT64_MAX;
	assert_int_equal(gpd_memory_create(&fake.session), 0);
	gpd_memory_map(&fake.session, FAKE_WINDOW, FAKE_GRANULE, 0);
	fake_driver_clear_calls();
	return 0;
}

static inline int
teardown(void **state)
{
	fake_session_run_markers(&fake, -1);
	gpd_graph_destroy_all(&fake.session);
	gpd_image_destroy_all(&fake.session);
	gpd_quiesce_jobs_wait();
	gpd_memory_unmap_all(&fake.session);
	gpd_memory_destroy(&fake.session);
	free(writer.memory);
	writer = (struct gp_graph_writer){ 0 };
	assert_int_equal(fake_driver_execs, 0);
	assert_int_equal(fake_driver_graphs, 0);
	fake_session_destroy(&fake);
	gpd_image_cache_stop();
	return 0;
}

/* Defines a test with this fixture. */
#define TEST(test) UNIT_TEST_WITH(test, setup, teardown)

/* Appends an empty node. dependencies: indices of `count` earlier nodes; NULL with count 0. */
static inline void
add_empty(const uint32_t *dependencies, uint32_t count)
{
	assert_non_null(gp_graph_write_node(&writer, 0, dependencies, count, 0));
}

/* Appends a node that fills 64 bytes at dst, with dependencies as in add_empty(). */
static inline void
add_fill(uint64_t dst, const uint32_t *dependencies, uint32_t count)
{
	const struct gp_args_gpFill args = {
		.dst = dst, .pitch = 64, .element_size = 4, .width = 16, .height = 1
	};
	struct gp_enc enc;
	void *fields = gp_graph_write_node(&writer, GP_CALL_gpFill, dependencies, count,
					   gp_args_gpFill_size(&args));

	assert_non_null(fields);
	gp_enc_init(&enc, fields, gp_args_gpFill_size(&args));
	gp_args_gpFill_encode(&enc, &args);
	gp_graph_shrink_last(&writer, gp_enc_size(&enc));
}

/* Appends a node that copies 64 bytes, without dependencies. */
static inline void
add_copy(uint64_t dst, uint64_t src)
{
	const struct gp_args_gpCopyDevice args = {
		.dst = dst, .src = src, .width = 64, .height = 1, .depth = 1
	};
	struct gp_enc enc;
	void *fields = gp_graph_write_node(&writer, GP_CALL_gpCopyDevice, NULL, 0,
					   gp_args_gpCopyDevice_size(&args));

	assert_non_null(fields);
	gp_enc_init(&enc, fields, gp_args_gpCopyDevice_size(&args));
	gp_args_gpCopyDevice_encode(&enc, &args);
	gp_graph_shrink_last(&writer, gp_enc_size(&enc));
}

/* Appends a launch of a kernel (GP_KERNEL()) with one thread, params_size bytes of zeros as
 * parameters, at most 32, and these attributes. */
static inline void
add_kernel_with(uint64_t kernel, size_t params_size, struct gp_bytes attributes)
{
	static const uint64_t params[4];
	const struct gp_args_gpLaunch args = { .kernel = kernel,
					       .grid_x = 1,
					       .grid_y = 1,
					       .grid_z = 1,
					       .block_x = 1,
					       .block_y = 1,
					       .block_z = 1,
					       .attributes = attributes,
					       .params = { params, params_size } };
	struct gp_enc enc;
	void *fields = gp_graph_write_node(&writer, GP_CALL_gpLaunch, NULL, 0,
					   gp_args_gpLaunch_size(&args));

	assert_non_null(fields);
	gp_enc_init(&enc, fields, gp_args_gpLaunch_size(&args));
	gp_args_gpLaunch_encode(&enc, &args);
	gp_graph_shrink_last(&writer, gp_enc_size(&enc));
}

/* Appends a launch without attributes. */
static inline void
add_kernel(uint64_t kernel, size_t params_size)
{
	add_kernel_with(kernel, params_size, (struct gp_bytes){ 0 });
}

/* Removes all nodes from the plan. */
static inline void
begin_plan(void)
{
	writer.size = writer.last = 0;
}

/* Makes these bytes the bulk bytes of the next call. They must stay valid during the call. */
static inline void
bring_bulk(const void *bulk, size_t size)
{
	fake.bulk = bulk;
	fake.session.current.bulk_left = size;
}

/* Creates an executable graph with the ID `name` from the plan (gpGraphMake). */
static inline CUresult
make(uint32_t name)
{
	bring_bulk(writer.memory, writer.size);
	return gpd_gpGraphMake(&fake.session, &(struct gp_args_gpGraphMake){ FAKE_CONTEXT, name });
}

/* Stores the plan under the ID `name` (gpGraphPut). */
static inline CUresult
put(uint32_t name)
{
	bring_bulk(writer.memory, writer.size);
	return gpd_gpGraphPut(&fake.session, &(struct gp_args_gpGraphPut){ FAKE_CONTEXT, name });
}

/* Creates an executable graph that kernels may launch, and stores the device's handle of it in
 * *exec_p; 0 on failure. */
static inline CUresult
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

/* Uploads the graph to the device, in the order of FAKE_STREAM. */
static inline CUresult
upload(uint32_t name)
{
	return gpd_gpGraphUpload(&fake.session,
				 &(struct gp_args_gpGraphUpload){ name, FAKE_STREAM });
}

/* Updates the executable graph to the plan. */
static inline CUresult
remake(uint32_t name)
{
	bring_bulk(writer.memory, writer.size);
	return gpd_gpGraphRemake(&fake.session, &(struct gp_args_gpGraphRemake){ name });
}

/* Launches the graph in FAKE_STREAM. */
static inline CUresult
launch(uint32_t name)
{
	return gpd_gpGraphLaunch(&fake.session,
				 &(struct gp_args_gpGraphLaunch){ name, FAKE_STREAM });
}

/* Destroys the graph. */
static inline CUresult
drop(uint32_t name)
{
	return gpd_gpGraphDrop(&fake.session, &(struct gp_args_gpGraphDrop){ name });
}

/* Returns the bytes of host memory that the session's handle table is charged for. */
static inline uint64_t
charged(void)
{
	assert_true(gpd_handle_memory_add(&fake.session.handles.memory, 0));
	return fake.session.handles.memory.used;
}

/* Loads an image with the kernels ant and zebra as IMAGE, or fails the test. */
static inline void
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
	fake_driver_clear_calls();
}

/* Sets the limit of all sessions' host memory so that a session can use its guaranteed GPD_HOST_MIN
 * and the memory of `nodes` more nodes. */
static inline void
limit_to(uint32_t nodes)
{
	fake.ledger->host_max = 2 * (uint64_t)nodes * GPD_GRAPH_NODE_COST;
}

#endif /* GRAPH_FIXTURE_H */
