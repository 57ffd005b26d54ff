/* SPDX-License-Identifier: Apache-2.0 */
/*
 * litmus [ROUNDS [SEED [SHAPE...]]]: guarantees of memory that the program and kernels use.
 * Each shape checks one guarantee in ROUNDS rounds for each kind of memory that it may use, with
 * random delays in the program and in the kernel. LITMUS_SHARED: pinned memory is shared and
 * registered memory is not, so that neither end polls a flag in pinned memory for data in
 * registered memory (docs/host-memory.md).
 */
#include "app.h"

#include <cuda.h>
#include <cudaTypedefs.h>
#include <random>
#include <sched.h>
#include <string>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* Memory that the program and kernels use, and its address for kernels. */
struct block {
	unsigned int *host, *device;
	bool registered;
};

static const size_t block_size = 64 << 10;

static block
block_create(bool registered)
{
	block made = { nullptr, nullptr, registered };

	if (registered) {
		made.host = static_cast<unsigned int *>(aligned_alloc(4096, block_size));
		REQUIRE(made.host);
		CHECK(cudaHostRegister(made.host, block_size, cudaHostRegisterMapped));
	} else {
		CHECK(cudaHostAlloc(&made.host, block_size, cudaHostAllocMapped));
	}
	CHECK(cudaHostGetDevicePointer(&made.device, made.host, 0));
	memset(made.host, 0, block_size);
	return made;
}

static void
block_destroy(const block &gone)
{
	if (!gone.registered) {
		CHECK(cudaFreeHost(gone.host));
		return;
	}
	CHECK(cudaHostUnregister(gone.host));
	free(gone.host);
}

/* Parameters of a shape. */
struct arena {
	block flag, data;
	cudaStream_t stream;
	unsigned int rounds;
	std::mt19937 random;
	unsigned int *wrong; /* of the device */
	PFN_cuStreamWaitValue32_v11070 wait;
	PFN_cuStreamWriteValue32_v11070 write;

	unsigned int below(unsigned int end)
	{
		return static_cast<unsigned int>(random()) % end;
	}

	/* The program's delay: none, a yield to another thread, or some microseconds. */
	void pause()
	{
		unsigned int kind = below(4);

		if (kind == 1)
			sched_yield();
		for (volatile unsigned int i = 0, end = kind > 1 ? below(3000) : 0; i < end;)
			i = i + 1;
	}

	/* The kernel's delay in nanoseconds. */
	unsigned int delay()
	{
		return below(3) ? below(20000) : 0;
	}

	const char *name(const block &of) const
	{
		return of.registered ? "registered" : "pinned";
	}
};

[[noreturn]] static void
litmus_fail(const arena &in, const char *shape, unsigned int round, const char *what)
{
	printf("%s, flag %s, data %s, round %u: %s\n", shape, in.name(in.flag), in.name(in.data),
	       round, what);
	fflush(stdout);
	_Exit(1);
}

template <typename T>
static T
driver_function(const char *name)
{
	cudaDriverEntryPointQueryResult found;
	void *function = nullptr;

	CHECK(cudaGetDriverEntryPointByVersion(name, &function, 12000, cudaEnableDefault, &found));
	REQUIRE(found == cudaDriverEntryPointSuccess);
	return reinterpret_cast<T>(function);
}

/* Two writers write different bytes of the same words, and none may be lost. */

static __global__ void
bytes_write(volatile unsigned char *bytes, unsigned int count, unsigned int step,
	    unsigned int width, unsigned char value, unsigned int delay)
{
	app_stay(delay);
	for (unsigned int at = 0; at < count; at += step) {
		for (unsigned int i = 0; i < width; i++)
			bytes[at + i] = value;
	}
}

static void
two_writers(arena &in)
{
	unsigned char *bytes = reinterpret_cast<unsigned char *>(in.data.host);

	for (unsigned int round = 1; round <= in.rounds; round++) {
		/* The kernel writes the first half of each 2, 4 or 8 bytes. */
		unsigned int step = 2u << in.below(3), width = 1 + in.below(step - 1);
		unsigned int count = 8 + 8 * in.below(in.below(2) ? 8 : 512);
		unsigned char own = static_cast<unsigned char>(round);
		unsigned char other = static_cast<unsigned char>(round * 7 + 1);

		bytes_write<<<1, 1, 0, in.stream>>>(
			reinterpret_cast<unsigned char *>(in.data.device), count, step, width,
			other, in.delay());
		in.pause();
		for (unsigned int at = 0; at < count; at++) {
			if (at % step >= width)
				const_cast<volatile unsigned char *>(bytes)[at] = own;
		}
		in.pause();
		CHECK(cudaStreamSynchronize(in.stream));
		for (unsigned int at = 0; at < count; at++) {
			if (bytes[at] != (at % step >= width ? own : other))
				litmus_fail(in, "two writers", round,
					    at % step >= width ? "a byte of the program is lost"
							       : "a byte of the kernel is lost");
		}
	}
}

/* Fills: synchronous fills of host memory are visible when the call returns. */

static void
fills_in_order(arena &in)
{
	unsigned int *words = in.data.host;

	for (unsigned int round = 1; round <= in.rounds; round++) {
		unsigned int value = (round & 255) * 0x01010101u, rows = 1 + in.below(8);
		unsigned int count = 16 * rows * (1 + in.below(in.below(2) ? 4 : 100));

		for (unsigned int i = 0; i < count; i++)
			words[i] = ~value;
		in.pause();
		switch (in.below(3)) {
		case 0:
			CHECK(cudaMemset(in.data.device, static_cast<int>(round), count * 4));
			break;
		case 1:
			CHECK(cudaMemset2D(in.data.device, count / rows * 4,
					   static_cast<int>(round), count / rows * 4, rows));
			break;
		default:
			CHECK(cudaMemsetAsync(in.data.device, static_cast<int>(round), count * 4,
					      in.stream));
			in.pause();
			CHECK(cudaStreamSynchronize(in.stream));
		}
		in.pause();
		for (unsigned int i = 0; i < count; i++) {
			if (words[i] != value)
				litmus_fail(in, "fill", round, "a word is old");
		}
	}
}

/* Messages: data, then a flag. A reader that sees the flag must see the data. */

static __global__ void
words_check(const volatile unsigned int *words, unsigned int count, unsigned int value,
	    unsigned int delay, unsigned int *wrong)
{
	app_stay(delay);
	for (unsigned int i = 0; i < count; i++)
		*wrong += words[i] != value + i;
}

static __global__ void
words_write(volatile unsigned int *words, unsigned int count, unsigned int value,
	    volatile unsigned int *flag, unsigned int delay)
{
	app_stay(delay);
	for (unsigned int i = 0; i < count; i++)
		words[i] = value + i;
	if (!flag)
		return;
	__threadfence_system();
	*flag = value;
}

static __global__ void
flag_await(volatile unsigned int *flag, unsigned int value, const volatile unsigned int *words,
	   unsigned int count, unsigned int *wrong)
{
	while (*flag != value)
		app_rest(1000);
	__threadfence_system();
	for (unsigned int i = 0; i < count; i++)
		*wrong += words[i] != value + i;
}

/* Layout of a message; data of more than 8 bytes is separate from its flag. */
struct message {
	unsigned int count, value;
	/* The message's words, for the host and for kernels. */
	volatile unsigned int *host, *device;

	message(arena &in, unsigned int round)
	    : count(3 + in.below(in.below(4) ? 30 : 4000)), value(round << 12),
	      host(in.data.host + 64), device(in.data.device + 64)
	{
	}

	void write()
	{
		for (unsigned int i = 0; i < count; i++)
			host[i] = value + i;
		__sync_synchronize();
	}

	bool is_here() const
	{
		bool here = true;

		for (unsigned int i = 0; i < count; i++)
			here &= host[i] == value + i;
		return here;
	}
};

static void
require_none_wrong(arena &in, const char *shape, unsigned int round)
{
	unsigned int wrong;

	CHECK(cudaMemcpy(&wrong, in.wrong, sizeof(wrong), cudaMemcpyDeviceToHost));
	if (wrong)
		litmus_fail(in, shape, round, "the kernel read old words");
}

/* The host writes a flag that a kernel polls. */
static void
message_to_kernel(arena &in)
{
	for (unsigned int round = 1; round <= in.rounds; round++) {
		message sent(in, round);

		flag_await<<<1, 1, 0, in.stream>>>(in.flag.device, sent.value, sent.device,
						   sent.count, in.wrong);
		in.pause();
		sent.write();
		*const_cast<volatile unsigned int *>(in.flag.host) = sent.value;
		in.pause();
		CHECK(cudaStreamSynchronize(in.stream));
		require_none_wrong(in, "message to a kernel", round);
	}
}

/* A kernel writes a flag that the host polls without a call. */
static void
message_to_host(arena &in)
{
	for (unsigned int round = 1; round <= in.rounds; round++) {
		message sent(in, round);

		words_write<<<1, 1, 0, in.stream>>>(sent.device, sent.count, sent.value,
						    in.flag.device, in.delay());
		in.pause();
		while (*const_cast<volatile unsigned int *>(in.flag.host) != sent.value)
			sched_yield();
		__sync_synchronize();
		if (!sent.is_here())
			litmus_fail(in, "message to the host", round, "the host read old words");
		CHECK(cudaStreamSynchronize(in.stream));
	}
}

/* Copies after a kernel that polls a flag: the host fills their sources before it writes the flag.
 * The sources are memory that kernels do not use, of the kind of in.data. */

struct copies {
	static const size_t rows = 60, row = 1000, pitch = 1500, texels = 64 * 4, layers = 30;
	static const size_t sizes_count = 3;
	size_t sizes[sizes_count] = { 256, 100000, size_t(8) << 20 };
	unsigned char *host[sizes_count + 2], *device[sizes_count + 1], *back;
	cudaArray_t array;
	bool registered;

	size_t size(size_t i) const
	{
		return i < sizes_count    ? sizes[i]
		       : i == sizes_count ? rows * pitch
					  : texels * layers;
	}

	explicit copies(bool is_registered) : registered(is_registered)
	{
		cudaChannelFormatDesc format = cudaCreateChannelDesc<unsigned int>();

		for (size_t i = 0; i < sizes_count + 2; i++) {
			if (registered) {
				host[i] = static_cast<unsigned char *>(
					aligned_alloc(4096, (size(i) + 4095) / 4096 * 4096));
				REQUIRE(host[i]);
				CHECK(cudaHostRegister(host[i], size(i), 0));
			} else {
				CHECK(cudaMallocHost(&host[i], size(i)));
			}
			if (i <= sizes_count)
				CHECK(cudaMalloc(&device[i], size(i)));
		}
		CHECK(cudaMallocArray(&array, &format, texels / 4, layers));
		back = static_cast<unsigned char *>(malloc(sizes[sizes_count - 1]));
		REQUIRE(back);
	}

	~copies()
	{
		for (size_t i = 0; i < sizes_count + 2; i++) {
			if (registered) {
				CHECK(cudaHostUnregister(host[i]));
				free(host[i]);
			} else {
				CHECK(cudaFreeHost(host[i]));
			}
			if (i <= sizes_count)
				CHECK(cudaFree(device[i]));
		}
		CHECK(cudaFreeArray(array));
		free(back);
	}

	void fill(unsigned char value)
	{
		for (size_t i = 0; i < sizes_count + 2; i++)
			memset(host[i], value + static_cast<int>(i), size(i));
		__sync_synchronize();
	}

	void start(cudaStream_t stream)
	{
		for (size_t i = 0; i < sizes_count; i++)
			CHECK(cudaMemcpyAsync(device[i], host[i], sizes[i], cudaMemcpyHostToDevice,
					      stream));
		CHECK(cudaMemcpy2DAsync(device[sizes_count], row, host[sizes_count], pitch, row,
					rows, cudaMemcpyHostToDevice, stream));
		CHECK(cudaMemcpy2DToArrayAsync(array, 0, 0, host[sizes_count + 1], texels, texels,
					       layers, cudaMemcpyHostToDevice, stream));
	}

	bool are_right(unsigned char value)
	{
		bool right = true;

		for (size_t i = 0; i < sizes_count + 2; i++) {
			size_t count = i == sizes_count ? rows * row : size(i);

			if (i <= sizes_count)
				CHECK(cudaMemcpy(back, device[i], count, cudaMemcpyDeviceToHost));
			else
				CHECK(cudaMemcpy2DFromArray(back, texels, array, 0, 0, texels,
							    layers, cudaMemcpyDeviceToHost));
			for (size_t at = 0; at < count; at++)
				right &= back[at] == static_cast<unsigned char>(value + i);
		}
		return right;
	}
};

static void
copy_after_poll(arena &in)
{
	copies made(in.data.registered);

	/* Each round has 10 MiB of copies. */
	for (unsigned int round = 1; round <= (in.rounds + 9) / 10; round++) {
		unsigned char value = static_cast<unsigned char>(in.below(256));

		made.fill(static_cast<unsigned char>(~value));
		flag_await<<<1, 1, 0, in.stream>>>(in.flag.device, round, in.flag.device, 0,
						   in.wrong);
		made.start(in.stream);
		in.pause();
		made.fill(value);
		*const_cast<volatile unsigned int *>(in.flag.host) = round;
		in.pause();
		CHECK(cudaStreamSynchronize(in.stream));
		if (!made.are_right(value))
			litmus_fail(in, "copy after a polling kernel", round,
				    "it read an old source");
	}
}

/* The same for memory that is replicated although other memory is shared, with a shared flag. */

static const size_t source_size = size_t(2) << 20;

static unsigned char *
source_register(cudaStream_t)
{
	void *memory = aligned_alloc(4096, source_size), *device;

	REQUIRE(memory);
	CHECK(cudaHostRegister(memory, source_size, cudaHostRegisterMapped));
	CHECK(cudaHostGetDevicePointer(&device, memory, 0));
	return static_cast<unsigned char *>(memory);
}

static unsigned char *
source_from_pool(cudaStream_t stream)
{
	cudaMemPoolProps props = {};
	cudaMemPool_t pool;
	void *memory;

	props.allocType = cudaMemAllocationTypePinned;
	props.handleTypes = cudaMemHandleTypePosixFileDescriptor;
	props.location.type = cudaMemLocationTypeHostNuma;
	CHECK(cudaMemPoolCreate(&pool, &props));
	CHECK(cudaMallocFromPoolAsync(&memory, source_size, pool, stream));
	CHECK(cudaStreamSynchronize(stream));
	return static_cast<unsigned char *>(memory);
}

static unsigned char *
source_map(cudaStream_t)
{
	CUmemGenericAllocationHandle handle;
	CUmemAllocationProp prop = {};
	CUmemAccessDesc desc = {};
	CUdeviceptr base;
	int supported;

	REQUIRE(driver_function<PFN_cuDeviceGetAttribute_v2000>("cuDeviceGetAttribute")(
			&supported,
			CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0) == 0);
	if (!supported)
		return nullptr;
	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
	desc.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	desc.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	REQUIRE(driver_function<PFN_cuMemCreate_v10020>("cuMemCreate")(&handle, source_size, &prop,
								       0) == 0);
	REQUIRE(driver_function<PFN_cuMemAddressReserve_v10020>("cuMemAddressReserve")(
			&base, source_size, 0, 0, 0) == 0);
	REQUIRE(driver_function<PFN_cuMemMap_v10020>("cuMemMap")(base, source_size, 0, handle, 0) ==
		0);
	REQUIRE(driver_function<PFN_cuMemSetAccess_v10020>("cuMemSetAccess")(base, source_size,
									     &desc, 1) == 0);
	return reinterpret_cast<unsigned char *>(base);
}

static void
copy_after_poll_from(arena &in, const char *kind, unsigned char *source)
{
	const size_t sizes[] = { source_size, 256 };
	unsigned char *device = app_malloc<unsigned char>(source_size);
	unsigned char *back = static_cast<unsigned char *>(malloc(source_size));

	REQUIRE(back);
	/* From here on kernels know the address. */
	flag_await<<<1, 1, 0, in.stream>>>(in.flag.device, 0,
					   reinterpret_cast<unsigned int *>(source), 0, in.wrong);
	CHECK(cudaStreamSynchronize(in.stream));
	for (unsigned int round = 1; round <= (in.rounds + 9) / 10; round++) {
		unsigned char value = static_cast<unsigned char>(in.below(256));
		size_t size = sizes[round % 2];

		memset(source, static_cast<unsigned char>(~value), size);
		flag_await<<<1, 1, 0, in.stream>>>(in.flag.device, round, in.flag.device, 0,
						   in.wrong);
		CHECK(cudaMemcpyAsync(device, source, size, cudaMemcpyDefault, in.stream));
		in.pause();
		memset(source, value, size);
		__sync_synchronize();
		*const_cast<volatile unsigned int *>(in.flag.host) = round;
		CHECK(cudaStreamSynchronize(in.stream));
		CHECK(cudaMemcpy(back, device, size, cudaMemcpyDeviceToHost));
		for (size_t at = 0; at < size; at++) {
			if (back[at] != value)
				litmus_fail(in, kind, round, "it read an old source");
		}
	}
	*const_cast<volatile unsigned int *>(in.flag.host) = 0;
	free(back);
}

static void
replica_after_poll(arena &in)
{
	static const struct {
		const char *name;
		unsigned char *(*create)(cudaStream_t stream);
	} kinds[] = {
		{ "copy of registered memory after a polling kernel", source_register },
		{ "copy of an exportable pool after a polling kernel", source_from_pool },
		{ "copy of mapped host memory after a polling kernel", source_map },
	};

	for (const auto &kind : kinds) {
		unsigned char *source = kind.create(in.stream);

		if (source)
			copy_after_poll_from(in, kind.name, source);
	}
}

/* A stream waits for the flag, which the host or another stream writes. */
static void
wait_value(arena &in)
{
	cudaStream_t other;

	CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
	for (unsigned int round = 1; round <= in.rounds; round++) {
		message sent(in, round);
		CUdeviceptr flag = reinterpret_cast<CUdeviceptr>(in.flag.device);

		REQUIRE(in.wait(in.stream, flag, sent.value, CU_STREAM_WAIT_VALUE_EQ) == 0);
		words_check<<<1, 1, 0, in.stream>>>(sent.device, sent.count, sent.value, in.delay(),
						    in.wrong);
		in.pause();
		sent.write();
		if (in.below(2))
			*const_cast<volatile unsigned int *>(in.flag.host) = sent.value;
		else
			REQUIRE(in.write(other, flag, sent.value, 0) == 0);
		in.pause();
		CHECK(cudaStreamSynchronize(in.stream));
		CHECK(cudaStreamSynchronize(other));
		require_none_wrong(in, "wait value", round);
	}
	CHECK(cudaStreamDestroy(other));
}

/* A wait value in device memory, which a later fill or copy of another stream writes. */
static void
device_word(arena &in)
{
	unsigned int *word, *source, *pinned;
	cudaStream_t other;

	CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
	CHECK(cudaMalloc(&word, sizeof(*word)));
	CHECK(cudaMalloc(&source, sizeof(*source)));
	CHECK(cudaMallocHost(&pinned, sizeof(*pinned)));
	CHECK(cudaMemset(word, 0, sizeof(*word)));
	/* The streams below do not wait for it. */
	CHECK(cudaDeviceSynchronize());
	for (unsigned int round = 1; round <= in.rounds; round++) {
		message sent(in, round);
		unsigned int byte = 1 + round % 200, value = byte * 0x01010101u;
		unsigned int pageable = value;

		*pinned = value;
		CHECK(cudaMemsetAsync(source, static_cast<int>(byte), sizeof(*source), other));
		REQUIRE(in.wait(in.stream, reinterpret_cast<CUdeviceptr>(word), value,
				CU_STREAM_WAIT_VALUE_EQ) == 0);
		words_check<<<1, 1, 0, in.stream>>>(sent.device, sent.count, sent.value, in.delay(),
						    in.wrong);
		in.pause();
		sent.write();
		switch (in.below(4)) {
		case 0:
			CHECK(cudaMemsetAsync(word, static_cast<int>(byte), sizeof(*word), other));
			break;
		case 1:
			CHECK(cudaMemcpyAsync(word, source, sizeof(*word), cudaMemcpyDeviceToDevice,
					      other));
			break;
		case 2:
			CHECK(cudaMemcpyAsync(word, pinned, sizeof(*word), cudaMemcpyHostToDevice,
					      other));
			break;
		default:
			CHECK(cudaMemcpyAsync(word, &pageable, sizeof(*word),
					      cudaMemcpyHostToDevice, other));
			break;
		}
		in.pause();
		CHECK(cudaStreamSynchronize(in.stream));
		CHECK(cudaStreamSynchronize(other));
		require_none_wrong(in, "device word", round);
	}
	CHECK(cudaStreamDestroy(other));
	CHECK(cudaFree(word));
	CHECK(cudaFree(source));
	CHECK(cudaFreeHost(pinned));
}

/* Launch and synchronization: a kernel reads what was written before its launch, and what the
 * kernel wrote is visible to the host after the stream, or an event after the kernel, is
 * complete. */
static void
event(arena &in)
{
	cudaEvent_t done;

	CHECK(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
	for (unsigned int round = 1; round <= in.rounds; round++) {
		message sent(in, 2 * round), back(in, 2 * round + 1);

		sent.write();
		words_check<<<1, 1, 0, in.stream>>>(sent.device, sent.count, sent.value, 0,
						    in.wrong);
		words_write<<<1, 1, 0, in.stream>>>(back.device, back.count, back.value, nullptr,
						    in.delay());
		CHECK(cudaEventRecord(done, in.stream));
		in.pause();
		if (in.below(2)) {
			CHECK(cudaEventSynchronize(done));
		} else {
			cudaError_t error;

			while ((error = cudaEventQuery(done)) == cudaErrorNotReady)
				in.pause();
			CHECK(error);
		}
		if (!back.is_here())
			litmus_fail(in, "event", round, "the host read old words");
		require_none_wrong(in, "event", round);
	}
	CHECK(cudaEventDestroy(done));
}

/* Store buffering: each side writes its own word, then reads the other's. After a synchronization
 * both words are visible on both sides. */
static __global__ void
store_and_load(volatile unsigned int *own, unsigned int value, volatile unsigned int *other,
	       unsigned int *seen, unsigned int delay)
{
	app_stay(delay);
	*own = value;
	__threadfence_system();
	*seen = *other;
}

static void
store_buffering(arena &in)
{
	unsigned int *seen = app_malloc<unsigned int>(1);
	volatile unsigned int *flag = in.flag.host, *data = in.data.host;

	for (unsigned int round = 1; round <= in.rounds; round++) {
		unsigned int kernel_saw, host_saw;

		store_and_load<<<1, 1, 0, in.stream>>>(in.data.device, round, in.flag.device, seen,
						       in.delay());
		in.pause();
		*flag = round;
		__sync_synchronize();
		host_saw = *data;
		CHECK(cudaStreamSynchronize(in.stream));
		CHECK(cudaMemcpy(&kernel_saw, seen, sizeof(kernel_saw), cudaMemcpyDeviceToHost));
		/* Only the last two values are possible, and both stores have arrived. */
		if ((host_saw != round && host_saw != round - 1) ||
		    (kernel_saw != round && kernel_saw != round - 1))
			litmus_fail(in, "store buffering", round, "a word that nobody wrote");
		if (*data != round || *flag != round)
			litmus_fail(in, "store buffering", round, "a store is lost");
	}
	CHECK(cudaFree(seen));
}

/* Host functions in stream order: they see the results of earlier work, and later work sees
 * theirs. */
struct host_step {
	message *before, *after;
	unsigned int pause;
	bool wrong;
};

static void CUDART_CB
host_step_run(void *data)
{
	host_step *step = static_cast<host_step *>(data);

	for (volatile unsigned int i = 0; i < step->pause;)
		i = i + 1;
	step->wrong = !step->before->is_here();
	step->after->write();
}

static void CUDART_CB
host_step_call(cudaStream_t stream, cudaError_t error, void *data)
{
	(void)stream;
	if (error == cudaSuccess)
		host_step_run(data);
}

static void
host_work(arena &in, const char *shape, bool callback)
{
	for (unsigned int round = 1; round <= in.rounds; round++) {
		message before(in, 2 * round), after(in, 2 * round + 1);
		host_step step = { &before, &after, in.below(2000), true };

		words_write<<<1, 1, 0, in.stream>>>(before.device, before.count, before.value,
						    nullptr, in.delay());
		if (callback)
			CHECK(cudaStreamAddCallback(in.stream, host_step_call, &step, 0));
		else
			CHECK(cudaLaunchHostFunc(in.stream, host_step_run, &step));
		words_check<<<1, 1, 0, in.stream>>>(after.device, after.count, after.value,
						    in.delay(), in.wrong);
		in.pause();
		CHECK(cudaStreamSynchronize(in.stream));
		if (step.wrong)
			litmus_fail(in, shape, round, "the function read old words");
		require_none_wrong(in, shape, round);
	}
}

static void
host_function(arena &in)
{
	host_work(in, "host function", false);
}

static void
callback(arena &in)
{
	host_work(in, "callback", true);
}

/* Implicit synchronization: the results of earlier work are visible after memory has been freed. */
static void
frees(arena &in)
{
	for (unsigned int round = 1; round <= in.rounds; round++) {
		unsigned int *device = app_malloc<unsigned int>(64), *pinned = nullptr;
		bool frees_pinned = in.below(2);
		message sent(in, round);

		if (frees_pinned)
			CHECK(cudaMallocHost(&pinned, 64));
		words_write<<<1, 1, 0, in.stream>>>(sent.device, sent.count, sent.value, nullptr,
						    in.delay());
		in.pause();
		CHECK(frees_pinned ? cudaFreeHost(pinned) : cudaFree(device));
		if (!sent.is_here())
			litmus_fail(in, "free", round, "the host read old words");
		CHECK(cudaStreamSynchronize(in.stream));
		if (frees_pinned)
			CHECK(cudaFree(device));
	}
}

/* A copy reads its source when the stream reaches it, here after a host function or another copy
 * has written the source. */
static void
stream_order(arena &in)
{
	unsigned int *device = app_malloc<unsigned int>(block_size / 4);

	for (unsigned int round = 1; round <= in.rounds; round++) {
		message before(in, 2 * round), after(in, 2 * round + 1);
		host_step step = { &before, &after, in.below(2000), false };
		const message *last = &before;

		words_write<<<1, 1, 0, in.stream>>>(device, before.count, before.value, nullptr,
						    in.delay());
		CHECK(cudaMemcpyAsync(in.data.host + 64, device, before.count * 4,
				      cudaMemcpyDeviceToHost, in.stream));
		if (in.below(2)) {
			CHECK(cudaLaunchHostFunc(in.stream, host_step_run, &step));
			last = &after;
		}
		CHECK(cudaMemcpyAsync(device, in.data.host + 64, last->count * 4,
				      cudaMemcpyHostToDevice, in.stream));
		words_check<<<1, 1, 0, in.stream>>>(device, last->count, last->value, in.delay(),
						    in.wrong);
		in.pause();
		CHECK(cudaStreamSynchronize(in.stream));
		if (step.wrong)
			litmus_fail(in, "stream order", round, "the function read old words");
		require_none_wrong(in, "stream order", round);
	}
	CHECK(cudaFree(device));
}

/* A stream copies data, then copies, fills or writes a flag in pinned memory, which the host polls.
 * Kernels cannot access the data's memory. */
static void
copied_flag(arena &in)
{
	unsigned int *device = app_malloc<unsigned int>(block_size / 4), *words;
	volatile unsigned int *flag;
	bool registered = in.data.registered;
	CUdeviceptr word;

	CHECK(cudaMallocHost(const_cast<unsigned int **>(&flag), 64));
	*flag = 0;
	word = reinterpret_cast<CUdeviceptr>(flag);
	if (registered) {
		words = static_cast<unsigned int *>(aligned_alloc(4096, block_size));
		REQUIRE(words);
		CHECK(cudaHostRegister(words, block_size, cudaHostRegisterDefault));
	} else {
		CHECK(cudaMallocHost(&words, block_size));
	}
	memset(words, 0, block_size);
	for (unsigned int round = 1; round <= in.rounds; round++) {
		unsigned int count = 3 + in.below(4000), value = (1 + round % 255) * 0x01010101u;
		unsigned int way = in.below(3);
		bool here = true;

		words_write<<<1, 1, 0, in.stream>>>(device, count, value, nullptr, in.delay());
		CHECK(cudaMemcpyAsync(words, device, count * 4, cudaMemcpyDeviceToHost, in.stream));
		if (way == 0)
			CHECK(cudaMemcpyAsync(const_cast<unsigned int *>(flag), device, 4,
					      cudaMemcpyDeviceToHost, in.stream));
		else if (way == 1)
			CHECK(cudaMemsetAsync(const_cast<unsigned int *>(flag), value & 255, 4,
					      in.stream));
		else
			REQUIRE(in.write(in.stream, word, value, 0) == 0);
		in.pause();
		while (*flag != value)
			sched_yield();
		__sync_synchronize();
		for (unsigned int i = 0; i < count; i++)
			here &= words[i] == value + i;
		if (!here)
			litmus_fail(in, "copied flag", round, "the host read old words");
		CHECK(cudaStreamSynchronize(in.stream));
	}
	if (registered) {
		CHECK(cudaHostUnregister(words));
		free(words);
	} else {
		CHECK(cudaFreeHost(words));
	}
	CHECK(cudaFreeHost(const_cast<unsigned int *>(flag)));
	CHECK(cudaFree(device));
}

/* Memory of one process in another. Each side writes a message for the other side, which waits for
 * the writer's event, or for nothing if the writer has synchronized implicitly. */
struct ipc_turn {
	unsigned int count, value;
	int waits;
};

struct ipc_handles {
	cudaIpcMemHandle_t memory;
	cudaIpcEventHandle_t event;
};

struct ipc_side {
	int peer;
	volatile unsigned int *words;
	cudaEvent_t event;

	template <typename T> void send_to(const T &value) const
	{
		REQUIRE(write(peer, &value, sizeof(value)) == static_cast<ssize_t>(sizeof(value)));
	}

	template <typename T> bool receive(T &value) const
	{
		return recv(peer, &value, sizeof(value), MSG_WAITALL) ==
		       static_cast<ssize_t>(sizeof(value));
	}

	void write_words(arena &in, unsigned int value) const
	{
		ipc_turn turn = { 1 + in.below(4000), value, static_cast<int>(in.below(2)) };
		unsigned int *scratch = app_malloc<unsigned int>(1);

		words_write<<<1, 1, 0, in.stream>>>(words, turn.count, value, nullptr, in.delay());
		if (turn.waits)
			CHECK(cudaEventRecord(event, in.stream));
		in.pause();
		CHECK(cudaFree(turn.waits ? nullptr : scratch));
		send_to(turn);
		if (turn.waits)
			CHECK(cudaFree(scratch));
	}

	bool check_words(arena &in, const char *shape) const
	{
		ipc_turn turn;

		if (!receive(turn))
			return false;
		in.pause();
		if (turn.waits)
			CHECK(cudaStreamWaitEvent(in.stream, event, 0));
		words_check<<<1, 1, 0, in.stream>>>(words, turn.count, turn.value, in.delay(),
						    in.wrong);
		CHECK(cudaStreamSynchronize(in.stream));
		require_none_wrong(in, shape, turn.value >> 12);
		return true;
	}
};

static void
ipc(arena &in)
{
	unsigned int *words = app_malloc<unsigned int>(block_size / 4);
	ipc_handles handles;
	ipc_side side;
	int pair[2], status;
	pid_t child;

	REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
	child = fork();
	REQUIRE(child >= 0);
	if (child == 0) {
		char self[] = "/proc/self/exe", number[16];
		char *arguments[] = { self, number, number, const_cast<char *>("ipc-peer"),
				      nullptr };

		snprintf(number, sizeof(number), "%u", in.rounds);
		if (dup2(pair[1], STDIN_FILENO) == STDIN_FILENO)
			execv(self, arguments);
		_Exit(1);
	}
	close(pair[1]);
	side.peer = pair[0];
	side.words = words;
	CHECK(cudaEventCreateWithFlags(&side.event,
				       cudaEventInterprocess | cudaEventDisableTiming));
	CHECK(cudaIpcGetMemHandle(&handles.memory, words));
	CHECK(cudaIpcGetEventHandle(&handles.event, side.event));
	side.send_to(handles);
	for (unsigned int round = 1; round <= in.rounds; round++) {
		side.write_words(in, 2 * round << 12);
		if (!side.check_words(in, "ipc"))
			litmus_fail(in, "ipc", round, "the other process has failed");
	}
	REQUIRE(waitpid(child, &status, 0) == child);
	REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	close(pair[0]);
	CHECK(cudaEventDestroy(side.event));
	CHECK(cudaFree(words));
}

/* The other process; its standard input is the socket. */
static void
ipc_peer(arena &in)
{
	ipc_side side = { STDIN_FILENO, nullptr, nullptr };
	ipc_handles handles;
	void *memory;

	REQUIRE(side.receive(handles));
	CHECK(cudaIpcOpenMemHandle(&memory, handles.memory, cudaIpcMemLazyEnablePeerAccess));
	CHECK(cudaIpcOpenEventHandle(&side.event, handles.event));
	side.words = static_cast<unsigned int *>(memory);
	for (unsigned int round = 1; round <= in.rounds; round++) {
		if (!side.check_words(in, "ipc, the other process"))
			_Exit(1);
		side.write_words(in, (2 * round + 1) << 12);
	}
	CHECK(cudaEventDestroy(side.event));
	CHECK(cudaIpcCloseMemHandle(memory));
}

/* A shape, and the kinds of memory that it uses. */
static const struct {
	const char *name;
	void (*run)(arena &in);
	bool has_flag;
	bool polls;   /* an end polls a flag that the other end writes */
	bool on_call; /* runs only if named, with one kind of memory */
} shapes[] = {
	{ "two-writers", two_writers, false, false, false },
	{ "fill", fills_in_order, false, false, false },
	{ "message-to-kernel", message_to_kernel, true, true, false },
	{ "message-to-host", message_to_host, true, true, false },
	{ "copy-after-poll", copy_after_poll, true, false, false },
	{ "replica-after-poll", replica_after_poll, false, false, true },
	{ "wait-value", wait_value, true, false, false },
	{ "device-word", device_word, true, false, false },
	{ "event", event, false, false, false },
	{ "store-buffering", store_buffering, true, false, false },
	{ "host-function", host_function, false, false, false },
	{ "callback", callback, false, false, false },
	{ "free", frees, false, false, false },
	{ "stream-order", stream_order, false, false, false },
	{ "copied-flag", copied_flag, false, false, false },
	{ "ipc", ipc, false, false, true },
	{ "ipc-peer", ipc_peer, false, false, true },
};

static bool
is_wanted(const char *name, bool on_call, int argc, char **argv)
{
	bool wanted = argc <= 3 && !on_call;

	for (int i = 3; i < argc; i++)
		wanted |= std::string(argv[i]) == name;
	return wanted;
}

int
main(int argc, char **argv)
{
	unsigned int rounds = argc > 1 ? static_cast<unsigned int>(atoi(argv[1])) : 20;
	bool shared = getenv("LITMUS_SHARED") != nullptr;
	unsigned int seed = argc > 2 ? static_cast<unsigned int>(atoi(argv[2])) : 1;

	app_load(reinterpret_cast<const void *>(words_check));
	app_load(reinterpret_cast<const void *>(words_write));
	for (const auto &shape : shapes) {
		if (!is_wanted(shape.name, shape.on_call, argc, argv))
			continue;
		int turns = shape.has_flag ? 4 : shape.on_call ? 1 : 2;

		for (int turn = 0; turn < turns; turn++) {
			/* Another seed starts with another kind of memory, because a session
			 * performs some actions only once. */
			int kinds = turn ^ (static_cast<int>(seed) & (turns - 1));

			if (shape.polls && shared && kinds == 1)
				continue;
			arena in = { block_create(kinds & 2),
				     block_create(kinds & 1),
				     nullptr,
				     rounds,
				     std::mt19937(seed),
				     app_malloc<unsigned int>(1),
				     driver_function<PFN_cuStreamWaitValue32_v11070>(
					     "cuStreamWaitValue32"),
				     driver_function<PFN_cuStreamWriteValue32_v11070>(
					     "cuStreamWriteValue32") };

			CHECK(cudaMemset(in.wrong, 0, sizeof(*in.wrong)));
			CHECK(cudaDeviceSynchronize());
			CHECK(cudaStreamCreateWithFlags(&in.stream, cudaStreamNonBlocking));
			shape.run(in);
			CHECK(cudaStreamDestroy(in.stream));
			CHECK(cudaFree(in.wrong));
			block_destroy(in.flag);
			block_destroy(in.data);
		}
	}
	/* The peer's output belongs to the program's output. */
	return argc > 3 && is_wanted("ipc-peer", true, argc, argv) ? 0 : app_ok("litmus");
}
