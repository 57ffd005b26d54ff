/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA driver API: occupancy. Each distinct query is sent once (client/base/query_cache.h). */
#include "client/context/device.h"
#include "client/context/object.h"
#include "client/guard/guard.h"
#include "client/module/function.h"
#include "client/module/image.h"
#include "client/module/launch.h"
#include "client/module/launch_shape.h"
#include "gpc_calls.h"
#include "protocol/image_info.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

/* Maximum number of block sizes, in whole warps, queried together. */
#define CANDIDATES_MAX 64
/* Number of consecutive cluster sizes queried together; cuBLAS queries this many. */
#define ROW_MAX 32

/* The kernel that is queried, in the session of the current context. */
struct subject {
	struct gpc_context *context;
	struct gpc_function *function;
	uint64_t kernel;
};

/* The number of blocks of this size that fit on a multiprocessor. */
struct candidate {
	int size;
	uint64_t shared;
	int blocks;
	bool known;
	struct gpc_kernel_query query;
};

static CUresult
subject_enter(CUfunction token, struct subject *subject)
{
	CUresult result = gpc_enter(&subject->context);

	if (result == CUDA_SUCCESS)
		result = gpc_function_lookup(subject->context, token, &subject->function);
	if (result == CUDA_SUCCESS)
		subject->kernel =
			GP_KERNEL(subject->function->image->handle.id, subject->function->index);
	return result;
}

static void
query_init(struct gpc_kernel_query *query, const struct subject *subject,
	   enum gpc_kernel_query_kind what, const uint32_t *words, size_t count)
{
	gpc_kernel_query_init(query, what, subject->context, subject->function);
	memcpy(query->words, words, count * sizeof(words[0]));
}

static void
candidate_find(const struct subject *subject, struct candidate *candidate, unsigned int flags)
{
	uint64_t answer = 0;

	gpc_kernel_query_init_blocks(&candidate->query, subject->context, subject->function,
				     candidate->size, candidate->shared, flags);
	candidate->known =
		gpc_kernel_query_find(subject->function->image, &candidate->query, &answer);
	candidate->blocks = (int)answer;
}

static void
candidate_store(const struct subject *subject, struct candidate *candidate, int blocks)
{
	candidate->blocks = blocks;
	candidate->known = true;
	gpc_kernel_query_put(subject->function->image, &candidate->query, (uint32_t)blocks);
}

static CUresult
candidate_query(const struct subject *subject, struct candidate *candidate, unsigned int flags)
{
	struct gp_reply_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags reply;
	const struct gp_args_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags args = {
		.func = subject->kernel,
		.blockSize = candidate->size,
		.dynamicSMemSize = candidate->shared,
		.flags = flags,
	};
	CUresult result;

	candidate_find(subject, candidate, flags);
	if (candidate->known)
		return CUDA_SUCCESS;
	result = gpc_wait_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(subject->context,
									       &args, &reply);
	if (result == CUDA_SUCCESS)
		candidate_store(subject, candidate, reply.numBlocks);
	return result;
}

/* Queries all unknown candidates in one round trip. */
static CUresult
candidates_query_batch(const struct subject *subject, struct candidate *candidates, size_t count,
		       unsigned int flags)
{
	struct gp_occupancy_query queries[CANDIDATES_MAX];
	struct gp_reply_gpOccupancyBlocks reply;
	struct gp_args_gpOccupancyBlocks args = { .kernel = subject->kernel, .flags = flags };
	uint32_t blocks[CANDIDATES_MAX];
	size_t sent = 0;
	void *memory = NULL;
	CUresult result;

	for (size_t i = 0; i < count; i++) {
		candidate_find(subject, &candidates[i], flags);
		if (!candidates[i].known)
			queries[sent++] = (struct gp_occupancy_query){ (uint32_t)candidates[i].size,
								       0, candidates[i].shared };
	}
	if (sent == 0)
		return CUDA_SUCCESS;
	args.questions = (struct gp_bytes){ queries, sent * sizeof(queries[0]) };
	result = gpc_wait_gpOccupancyBlocks(subject->context, &args, &reply, &memory);
	if (result == CUDA_SUCCESS && reply.blocks.size != sent * sizeof(blocks[0]))
		result = gpc_reply_fail_malformed(subject->context);
	if (result == CUDA_SUCCESS)
		memcpy(blocks, reply.blocks.data, reply.blocks.size);
	free(memory);
	sent = 0;
	for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++) {
		if (!candidates[i].known)
			candidate_store(subject, &candidates[i], (int)blocks[sent++]);
	}
	return result;
}

CUresult
gpc_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *numBlocks, CUfunction func,
							 int blockSize, size_t dynamicSMemSize,
							 unsigned int flags)
{
	struct candidate candidate = { .size = blockSize, .shared = dynamicSMemSize };
	struct subject subject;
	CUresult result = subject_enter(func, &subject);

	if (result != CUDA_SUCCESS)
		return result;
	if (!numBlocks)
		return CUDA_ERROR_INVALID_VALUE;
	result = candidate_query(&subject, &candidate, flags);
	if (result == CUDA_SUCCESS)
		*numBlocks = candidate.blocks;
	return result;
}

CUresult
gpc_cuOccupancyAvailableDynamicSMemPerBlock(size_t *dynamicSmemSize, CUfunction func, int numBlocks,
					    int blockSize)
{
	const uint32_t words[] = { (uint32_t)numBlocks, (uint32_t)blockSize };
	struct gp_args_cuOccupancyAvailableDynamicSMemPerBlock args = { .numBlocks = numBlocks,
									.blockSize = blockSize };
	struct gp_reply_cuOccupancyAvailableDynamicSMemPerBlock reply;
	struct gpc_kernel_query query;
	struct subject subject;
	CUresult result = subject_enter(func, &subject);

	if (result != CUDA_SUCCESS)
		return result;
	if (!dynamicSmemSize)
		return CUDA_ERROR_INVALID_VALUE;
	query_init(&query, &subject, GPC_KERNEL_QUERY_SHARED, words, 2);
	if (!gpc_kernel_query_find(subject.function->image, &query, &reply.dynamicSmemSize)) {
		args.func = subject.kernel;
		result = gpc_wait_cuOccupancyAvailableDynamicSMemPerBlock(subject.context, &args,
									  &reply);
		if (result != CUDA_SUCCESS)
			return result;
		gpc_kernel_query_put(subject.function->image, &query, reply.dynamicSmemSize);
	}
	*dynamicSmemSize = reply.dynamicSmemSize;
	return CUDA_SUCCESS;
}

static int
int_min(int a, int b)
{
	return a < b ? a : b;
}

/* Lists the block sizes that are whole warps, and the limit itself, largest first. Returns their
 * number. */
static size_t
candidates_list(const struct subject *subject, int limit, CUoccupancyB2DSize size_to_shared,
		size_t shared, struct candidate *candidates)
{
	int warp = gpc_device_attribute(subject->context->device, CU_DEVICE_ATTRIBUTE_WARP_SIZE);
	size_t count = 0;

	for (int aligned = (limit + warp - 1) / warp * warp; aligned > 0 && count < CANDIDATES_MAX;
	     aligned -= warp) {
		int size = int_min(aligned, limit);
		struct gpc_guard before = gpc_guard_clear();

		candidates[count++] = (struct candidate){
			.size = size,
			.shared = size_to_shared ? size_to_shared(size) : shared,
		};
		gpc_guard_set(before);
	}
	return count;
}

/* cuOccupancyMaxPotentialBlockSize: the size with the most threads on a multiprocessor. */
static const struct candidate *
candidates_get_best(const struct candidate *candidates, size_t count)
{
	const struct candidate *best = NULL;

	for (size_t i = 0; i < count; i++) {
		if (candidates[i].blocks > 0 &&
		    (!best ||
		     candidates[i].blocks * candidates[i].size > best->blocks * best->size))
			best = &candidates[i];
	}
	return best;
}

/* For an older daemon: one query per candidate. */
static CUresult
candidates_query_each(const struct subject *subject, struct candidate *candidates, size_t count,
		      unsigned int flags)
{
	CUresult result = CUDA_SUCCESS;

	for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++)
		result = candidate_query(subject, &candidates[i], flags);
	return result;
}

CUresult
gpc_cuOccupancyMaxPotentialBlockSizeWithFlags(int *minGridSize, int *blockSize, CUfunction func,
					      CUoccupancyB2DSize blockSizeToDynamicSMemSize,
					      size_t dynamicSMemSize, int blockSizeLimit,
					      unsigned int flags)
{
	struct candidate candidates[CANDIDATES_MAX];
	const struct candidate *best;
	const struct gpc_device *device;
	struct subject subject;
	size_t count;
	int limit;
	CUresult result = subject_enter(func, &subject);

	if (result != CUDA_SUCCESS)
		return result;
	if (!minGridSize || !blockSize || blockSizeLimit < 0)
		return CUDA_ERROR_INVALID_VALUE;
	result = gpc_cuFuncGetAttribute(&limit, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, func);
	if (result != CUDA_SUCCESS)
		return result;
	device = subject.context->device;
	if (gpc_device_attribute(device, CU_DEVICE_ATTRIBUTE_WARP_SIZE) <= 0)
		return CUDA_ERROR_INVALID_DEVICE;
	limit = int_min(limit,
			gpc_device_attribute(device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK));
	if (blockSizeLimit > 0)
		limit = int_min(limit, blockSizeLimit);
	count = candidates_list(&subject, limit, blockSizeToDynamicSMemSize, dynamicSMemSize,
				candidates);
	result = candidates_query_batch(&subject, candidates, count, flags);
	if (result == CUDA_ERROR_NOT_SUPPORTED)
		result = candidates_query_each(&subject, candidates, count, flags);
	if (result != CUDA_SUCCESS)
		return result;
	best = candidates_get_best(candidates, count);
	*minGridSize =
		best ? best->blocks * gpc_device_attribute(device,
							   CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
		     : 0;
	*blockSize = best ? best->size : 0;
	return CUDA_SUCCESS;
}

static CUresult
cluster_query(const struct subject *subject, unsigned int what, const CUlaunchConfig *config,
	      const struct gpc_launch_attributes *attributes, int *value)
{
	const struct gp_args_gpOccupancyCluster args = {
		.what = what,
		.kernel = subject->kernel,
		.grid_x = config->gridDimX,
		.grid_y = config->gridDimY,
		.grid_z = config->gridDimZ,
		.block_x = config->blockDimX,
		.block_y = config->blockDimY,
		.block_z = config->blockDimZ,
		.shared = config->sharedMemBytes,
		.attributes = attributes->bytes,
	};
	struct gp_reply_gpOccupancyCluster reply;
	CUresult result = gpc_wait_gpOccupancyCluster(subject->context, &args, &reply);

	if (result == CUDA_SUCCESS)
		*value = reply.value;
	return result;
}

/* Libraries query clusters of 1, 2, 3, ... blocks, each with a grid of one cluster. */
static bool
cluster_is_row(unsigned int what, const CUlaunchConfig *config,
	       const struct gpc_launch_attributes *attributes)
{
	const uint32_t *cluster = attributes->cluster, *preferred = attributes->preferred;

	return what == 1 && cluster[0] > 0 && cluster[0] <= ROW_MAX && cluster[1] == 1 &&
	       cluster[2] == 1 && config->gridDimX == cluster[0] && config->gridDimY == 1 &&
	       config->gridDimZ == 1 && !preferred[0] && !preferred[1] && !preferred[2];
}

/* A rejected size is a valid reply. Other errors, such as a lack of memory, are temporary. */
static bool
result_is_cacheable(CUresult result)
{
	return result == CUDA_SUCCESS || result == CUDA_ERROR_INVALID_VALUE ||
	       result == CUDA_ERROR_INVALID_CLUSTER_SIZE;
}

static void
clusters_store(struct gpc_image *image, const struct gpc_kernel_query *query, CUresult result,
	       int value)
{
	if (result_is_cacheable(result))
		gpc_kernel_query_put(image, query, (uint64_t)result << 32 | (uint32_t)value);
}

/* Stores the replies for all sizes of the row, starting with one block. */
static void
row_store(struct gpc_image *image, struct gpc_kernel_query query,
	  const struct gp_occupancy_clusters *answers)
{
	for (uint32_t i = 0; i < ROW_MAX; i++) {
		query.words[GPC_KERNEL_QUERY_CLUSTER] = i + 1;
		query.words[GPC_KERNEL_QUERY_GRID] = i + 1;
		clusters_store(image, &query, (CUresult)le32toh(answers[i].result),
			       (int)le32toh(answers[i].clusters));
	}
}

/* Queries all sizes in one round trip. On failure the caller queries the single size. */
static CUresult
row_query(const struct subject *subject, const CUlaunchConfig *config,
	  const struct gpc_launch_attributes *attributes, struct gp_occupancy_clusters *answers)
{
	const struct gp_args_gpOccupancyClusterSizes args = {
		.sizes = ROW_MAX,
		.kernel = subject->kernel,
		.block_x = config->blockDimX,
		.block_y = config->blockDimY,
		.block_z = config->blockDimZ,
		.shared = config->sharedMemBytes,
		.attributes = attributes->bytes,
	};
	struct gp_reply_gpOccupancyClusterSizes reply;
	void *memory = NULL;
	CUresult result =
		gpc_wait_gpOccupancyClusterSizes(subject->context, &args, &reply, &memory);

	if (result == CUDA_SUCCESS && reply.answers.size != ROW_MAX * sizeof(answers[0]))
		result = gpc_reply_fail_malformed(subject->context);
	if (result == CUDA_SUCCESS)
		memcpy(answers, reply.answers.data, reply.answers.size);
	free(memory);
	return result;
}

/* A query whose reply is not cached. watched: the reply may be cached. */
struct clusters {
	unsigned int what; /* as in gpOccupancyCluster */
	const CUlaunchConfig *config;
	struct gpc_launch_attributes attributes;
	struct gpc_kernel_query query;
	bool watched;
};

static CUresult
clusters_query(const struct subject *subject, const struct clusters *clusters, int *value)
{
	struct gp_occupancy_clusters answers[ROW_MAX];
	struct gpc_image *image = subject->function->image;
	CUresult result;

	if (clusters->watched &&
	    cluster_is_row(clusters->what, clusters->config, &clusters->attributes) &&
	    row_query(subject, clusters->config, &clusters->attributes, answers) == CUDA_SUCCESS) {
		const struct gp_occupancy_clusters *mine = &answers[clusters->config->gridDimX - 1];

		row_store(image, clusters->query, answers);
		*value = (int)le32toh(mine->clusters);
		return (CUresult)le32toh(mine->result);
	}
	result = cluster_query(subject, clusters->what, clusters->config, &clusters->attributes,
			       value);
	if (clusters->watched)
		clusters_store(image, &clusters->query, result, *value);
	return result;
}

/* The reply depends on the session's share of the GPU, whose changes the daemon reports. */
static CUresult
clusters_get(unsigned int what, int *value, CUfunction func, const CUlaunchConfig *config)
{
	struct clusters clusters = { .what = what, .config = config };
	struct subject subject;
	uint64_t answer;
	int count_out = 0;
	CUresult result = subject_enter(func, &subject);

	if (result != CUDA_SUCCESS)
		return result;
	if (!value || !config)
		return CUDA_ERROR_INVALID_VALUE;
	result = gpc_launch_attributes_encode(config, &clusters.attributes);
	if (result != CUDA_SUCCESS)
		return result;
	clusters.watched = gpc_share_watch(subject.context);
	gpc_kernel_query_init(&clusters.query, GPC_KERNEL_QUERY_CLUSTERS + what, subject.context,
			      subject.function);
	gpc_kernel_query_set_shape(&clusters.query, config, &clusters.attributes);
	if (gpc_kernel_query_find(subject.function->image, &clusters.query, &answer)) {
		count_out = (int)(uint32_t)answer;
		result = (CUresult)(answer >> 32);
	} else {
		result = clusters_query(&subject, &clusters, &count_out);
	}
	if (result == CUDA_SUCCESS)
		*value = count_out;
	return result;
}

CUresult
gpc_cuOccupancyMaxPotentialClusterSize(int *clusterSize, CUfunction func,
				       const CUlaunchConfig *config)
{
	return clusters_get(0, clusterSize, func, config);
}

CUresult
gpc_cuOccupancyMaxActiveClusters(int *numClusters, CUfunction func, const CUlaunchConfig *config)
{
	return clusters_get(1, numClusters, func, config);
}
