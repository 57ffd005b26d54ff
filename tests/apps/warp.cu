/* SPDX-License-Identifier: Apache-2.0 */
/* Operations across the lanes of a warp. */
#include "app.h"

const unsigned int full = 0xffffffffu;

static __global__ void
across_lanes(int *sums, unsigned int *ballots, int *shuffles, int *votes)
{
	int lane = threadIdx.x % 32;
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	int sum = i;

	for (int offset = 16; offset > 0; offset /= 2)
		sum += __shfl_down_sync(full, sum, offset);
	if (lane == 0)
		sums[i / 32] = sum;
	ballots[i] = __ballot_sync(full, lane % 3 == 0);
	shuffles[4 * i] = __shfl_sync(full, lane * 10, (lane + 5) % 32);
	shuffles[4 * i + 1] = __shfl_up_sync(full, lane, 2);
	shuffles[4 * i + 2] = __shfl_xor_sync(full, lane, 7);
	shuffles[4 * i + 3] = __shfl_sync(full, lane, 3, 8);
	votes[i] = (__any_sync(full, lane == 31) ? 1 : 0) + (__all_sync(full, lane < 31) ? 2 : 0) +
		   (__all_sync(full, lane < 32) ? 4 : 0) +
		   (__popc(__match_any_sync(full, lane / 4)) == 4 ? 8 : 0);
}

static __global__ void
half_warp(int *out)
{
	int lane = threadIdx.x;

	/* Only the even lanes take part. */
	if (lane % 2 == 0)
		out[lane] = __shfl_xor_sync(0x55555555u, lane, 2);
	else
		out[lane] = -lane;
	__syncwarp();
	if (lane < 16)
		out[lane] += 100 * __shfl_xor_sync(0xffffu, lane, 1);
}

static __global__ void
block_votes(int *out)
{
	int i = threadIdx.x;
	int count = __syncthreads_count(i % 5 == 0);
	int all = __syncthreads_and(i < 96) != 0;
	int any = __syncthreads_or(i == 95) != 0;

	out[i] = count * 100 + all * 10 + any;
}

int
main()
{
	const int threads = 96, blocks = 2, total = threads * blocks;
	int *sums = app_malloc<int>(total / 32);
	unsigned int *ballots = app_malloc<unsigned int>(total);
	int *shuffles = app_malloc<int>(4 * total);
	int *votes = app_malloc<int>(total);

	across_lanes<<<blocks, threads>>>(sums, ballots, shuffles, votes);
	CHECK(cudaGetLastError());
	std::vector<int> s = app_download(sums, total / 32);
	for (int warp = 0; warp < total / 32; warp++)
		REQUIRE(s[warp] == 32 * 32 * warp + 31 * 16);
	for (unsigned int ballot : app_download(ballots, total))
		REQUIRE(ballot == 0x49249249u);
	std::vector<int> x = app_download(shuffles, 4 * total);
	for (int i = 0; i < total; i++) {
		int lane = i % 32;
		REQUIRE(x[4 * i] == (lane + 5) % 32 * 10);
		REQUIRE(x[4 * i + 1] == (lane < 2 ? lane : lane - 2));
		REQUIRE(x[4 * i + 2] == (lane ^ 7));
		REQUIRE(x[4 * i + 3] == lane / 8 * 8 + 3);
	}
	for (int vote : app_download(votes, total))
		REQUIRE(vote == 1 + 4 + 8);
	printf("whole warps\n");

	half_warp<<<1, 32>>>(sums = app_malloc<int>(32));
	s = app_download(sums, 32);
	for (int i = 0; i < 32; i++)
		REQUIRE(s[i] == (i % 2 ? -i : i ^ 2) + (i < 16 ? 100 * (i ^ 1) : 0));
	printf("part of a warp\n");
	block_votes<<<1, 96>>>(votes);
	for (int vote : app_download(votes, 96))
		REQUIRE(vote == 2000 + 11);
	printf("whole blocks\n");
	return app_ok("warp");
}
