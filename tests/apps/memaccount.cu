/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memaccount PROGRAMS SEED STEPS: the free memory and the memory of all programs add up to the
 * total after each allocation and each free of any kind. Two programs alternate, and each must see
 * the memory of the other.
 */
#include "physical_app.h"

#include <sys/wait.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)
/* Granularity to which sizes are rounded up, also those of memory that is cut from a larger
 * mapping. */
#define GRANULE (2 * MIB)
/* Memory that a pool may map for a small allocation, in the program's pools and in managed
 * memory. */
#define MAPPED (64 * MIB)
/* Memory that a program may cache without other programs knowing the exact amount, and other memory
 * that it may have mapped: the rest of a chunk for small allocations. */
#define UNTOLD (32 * MIB)
#define UNSEEN MAPPED
#define BLOCKS 12

enum kind {
	MALLOC,
	SMALL,
	ASYNC,
	POOL,
	ARRAY,
	MANAGED,
	PHYSICAL,
	KINDS
};

struct block {
	bool used;
	kind what;
	size_t size;
	void *memory;
	CUmemGenericAllocationHandle handle;
};

/* A program's report after a step. */
struct account {
	size_t least, most; /* bounds of the bytes that the program has */
	size_t free, total;
};

static block blocks[BLOCKS];
static cudaStream_t stream;
static cudaMemPool_t own, standard;
static unsigned long long state;

static size_t
pick(size_t count)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (size_t)(state >> 33) % count;
}

static size_t
round_up(size_t size)
{
	return (size + GRANULE - 1) / GRANULE * GRANULE;
}

static void
physical(block *b)
{
	b->size = round_up(b->size);
	b->handle = app_physical_create(app_physical_properties(), b->size);
	b->memory = (void *)app_physical_map(b->handle, b->size);
}

/* An allocation can get all free memory except what pools map in addition. */
static void
allocate(block *b)
{
	cudaChannelFormatDesc floats = cudaCreateChannelDesc<float>();
	cudaArray_t array;
	size_t free, total;

	b->what = (kind)pick(KINDS);
	b->size = b->what == SMALL ? 1 + pick(MIB) : MIB + pick(pick(4) == 0 ? 70 * MIB : 12 * MIB);
	CHECK(cudaMemGetInfo(&free, &total));
	if (b->size + 2 * MAPPED > free)
		return;
	switch (b->what) {
	case MALLOC:
	case SMALL:
		CHECK(cudaMalloc(&b->memory, b->size));
		CHECK(cudaMemsetAsync(b->memory, 1, b->size, stream));
		break;
	case ASYNC:
		CHECK(cudaMallocAsync(&b->memory, b->size, stream));
		CHECK(cudaMemsetAsync(b->memory, 1, 4096, stream));
		break;
	case POOL:
		CHECK(cudaMallocFromPoolAsync(&b->memory, b->size, own, stream));
		break;
	case ARRAY:
		/* Of a size that fills whole tiles. */
		b->size = b->size / (8 * MIB) * 8 * MIB + 8 * MIB;
		CHECK(cudaMallocArray(&array, &floats, 2048, b->size / 4 / 2048));
		b->memory = array;
		break;
	case MANAGED:
		CHECK(cudaMallocManaged(&b->memory, b->size));
		break;
	default:
		physical(b);
	}
	b->used = true;
}

static void
release(block *b)
{
	CUdeviceptr at = (CUdeviceptr)b->memory;

	switch (b->what) {
	case ASYNC:
	case POOL:
		if (pick(3) == 0)
			CHECK(cudaFree(b->memory));
		else
			CHECK(cudaFreeAsync(b->memory, stream));
		break;
	case ARRAY:
		CHECK(cudaFreeArray((cudaArray_t)b->memory));
		break;
	case PHYSICAL:
		app_physical_unmap(at, b->size);
		DCHECK(DRIVER(cuMemRelease)(b->handle));
		break;
	default:
		CHECK(cudaFree(b->memory));
	}
	b->used = false;
}

static size_t
reserved(cudaMemPool_t pool)
{
	unsigned long long value = 0;

	CHECK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &value));
	return value;
}

static account
measure(void)
{
	account now = {};
	size_t rounded = 0, in_pools = 0;

	for (const block &b : blocks) {
		if (!b.used)
			continue;
		now.least += b.size;
		rounded += round_up(b.size);
		in_pools += b.what == ASYNC || b.what == POOL ? b.size : 0;
		if (b.what == MANAGED && b.size < MAPPED)
			rounded += MAPPED - round_up(b.size);
	}
	now.most = rounded - in_pools + reserved(own) + reserved(standard) + BLOCKS * GRANULE;
	CHECK(cudaMemGetInfo(&now.free, &now.total));
	return now;
}

static void
step(bool last)
{
	block *b = &blocks[pick(BLOCKS)];

	if (last) {
		for (block &one : blocks) {
			if (one.used)
				release(&one);
		}
	} else if (b->used) {
		release(b);
	} else {
		allocate(b);
	}
	if (last || pick(2) == 0)
		CHECK(cudaStreamSynchronize(stream));
}

static void
open_device(void)
{
	cudaMemPoolProps props = {};

	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	props.allocType = cudaMemAllocationTypePinned;
	props.location.type = cudaMemLocationTypeDevice;
	CHECK(cudaMemPoolCreate(&own, &props));
	CHECK(cudaDeviceGetDefaultMemPool(&standard, 0));
}

/* Performs a step for each byte that arrives, or reports the free memory, until 'q'. */
static void
serve(int in, int out)
{
	char what;

	open_device();
	while (read(in, &what, 1) == 1 && what != 'q') {
		account now;

		if (what != 'l')
			step(what == 'e');
		now = measure();
		REQUIRE(write(out, &now, sizeof(now)) == (ssize_t)sizeof(now));
	}
	exit(0);
}

struct program {
	int in, out;
	pid_t pid;
	account now;
};

static void
request(program *p, char what)
{
	REQUIRE(write(p->in, &what, 1) == 1);
	REQUIRE(read(p->out, &p->now, sizeof(p->now)) == (ssize_t)sizeof(p->now));
}

static void
start(program *p, unsigned long long seed)
{
	int to[2], from[2];

	REQUIRE(pipe(to) == 0 && pipe(from) == 0);
	p->pid = fork();
	REQUIRE(p->pid >= 0);
	if (p->pid == 0) {
		close(to[1]);
		close(from[0]);
		state = seed;
		serve(to[0], from[1]);
	}
	close(to[0]);
	close(from[1]);
	p->in = to[1];
	p->out = from[0];
}

static bool
is_right(const std::vector<program> &programs, size_t all, int at, bool tell)
{
	const size_t others = programs.size() - 1, slack = GRANULE * 2 * programs.size();
	const size_t over = slack + others * UNTOLD, under = over + others * UNSEEN;
	size_t least = 0, most = 0;

	for (const program &p : programs) {
		least += p.now.least;
		most += p.now.most;
	}
	for (size_t i = 0; i < programs.size(); i++) {
		const size_t free = programs[i].now.free;

		if (free + least <= all + over && free + most + under >= all)
			continue;
		if (!tell)
			return false;
		printf("step %d, program %zu: %zu MiB are free, %zu to %zu are had, of %zu\n", at,
		       i, free / MIB, least / MIB, most / MIB, all / MIB);
		app_fail("free memory and what is had are not all there is", __LINE__);
	}
	return true;
}

/* Memory that a program releases because the other one needed it may still be in the process of
 * being unmapped. */
static void
judge(std::vector<program> &programs, size_t all, int at)
{
	for (int i = 0; programs.size() > 1 && i < 1000; i++) {
		if (is_right(programs, all, at, false))
			return;
		usleep(20000);
		for (program &p : programs)
			request(&p, 'l');
	}
	(void)is_right(programs, all, at, true);
}

int
main(int argc, char **argv)
{
	const int count = argc > 1 ? atoi(argv[1]) : 1, steps = argc > 3 ? atoi(argv[3]) : 100;
	const unsigned long long seed = argc > 2 ? strtoull(argv[2], nullptr, 0) : 1;
	std::vector<program> programs(count);
	size_t all = 0;

	state = seed;
	setvbuf(stdout, nullptr, _IONBF, 0);
	for (program &p : programs)
		start(&p, seed * 31 + (&p - programs.data()));
	/* Each has its context before anything is counted. */
	for (program &p : programs)
		request(&p, 'l');
	for (program &p : programs) {
		request(&p, 'l');
		all = p.now.free > all ? p.now.free : all;
	}
	for (int i = 0; i < steps; i++) {
		request(&programs[pick(programs.size())], i % 40 == 39 ? 'e' : 's');
		for (program &p : programs)
			request(&p, 'l');
		judge(programs, all, i);
	}
	for (program &p : programs)
		request(&p, 'e');
	for (program &p : programs)
		request(&p, 'l');
	judge(programs, all, steps);
	for (program &p : programs) {
		int status;

		REQUIRE(write(p.in, "q", 1) == 1);
		REQUIRE(waitpid(p.pid, &status, 0) == p.pid && status == 0);
	}
	return app_ok("memaccount");
}
