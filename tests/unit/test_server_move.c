/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams of a session whose share of the multiprocessors changes while they work: the real units
 * of a worker on the driver that GP_TEST_DRIVER names: the software device, or libcuda.so.1.
 */
#include "gpd_calls.h"
#include "server/context.h"
#include "server/driver.h"
#include "server/session.h"
#include "server/stream.h"
#include "server/wait.h"
#include "server/wait_page.h"
#include "server/worker.h"
#include "tests/test.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LEGACY 1u
#define A 2u
#define B 3u
#define FREE 4u
#define BLOCKS 500u

static const char ptx[] = ".version 7.0\n"
			  ".target sm_75\n"
			  ".address_size 64\n"
			  /* Where each block ran; long enough that none runs twice on one place
			     while another is free. */
			  ".visible .entry where(.param .u64 out)\n"
			  "{\n"
			  "	.reg .u64 %rd<7>;\n"
			  "	.reg .u32 %r<4>;\n"
			  "	.reg .pred %p<2>;\n"
			  "	ld.param.u64 %rd1, [out];\n"
			  "	mov.u32 %r1, %ctaid.x;\n"
			  "	mul.wide.u32 %rd2, %r1, 4;\n"
			  "	add.u64 %rd3, %rd1, %rd2;\n"
			  "	mov.u32 %r2, %smid;\n"
			  "	st.global.u32 [%rd3], %r2;\n"
			  "	mov.u64 %rd4, %clock64;\n"
			  "again:\n"
			  "	mov.u64 %rd5, %clock64;\n"
			  "	sub.u64 %rd6, %rd5, %rd4;\n"
			  "	setp.lt.u64 %p1, %rd6, 20000;\n"
			  "	@%p1 bra again;\n"
			  "	ret;\n"
			  "}\n"
			  /* Appends its argument to a list whose length is the first word. */
			  ".visible .entry append(.param .u64 list, .param .u32 value)\n"
			  "{\n"
			  "	.reg .u64 %rd<4>;\n"
			  "	.reg .u32 %r<4>;\n"
			  "	ld.param.u64 %rd1, [list];\n"
			  "	ld.param.u32 %r1, [value];\n"
			  "	ld.volatile.global.u32 %r2, [%rd1];\n"
			  "	add.u32 %r3, %r2, 1;\n"
			  "	mul.wide.u32 %rd2, %r3, 4;\n"
			  "	add.u64 %rd3, %rd1, %rd2;\n"
			  "	st.volatile.global.u32 [%rd3], %r1;\n"
			  "	st.volatile.global.u32 [%rd1], %r3;\n"
			  "	ret;\n"
			  "}\n"
			  /* Until somebody sets the word, or for some seconds. */
			  ".visible .entry spin(.param .u64 word)\n"
			  "{\n"
			  "	.reg .u64 %rd<5>;\n"
			  "	.reg .u32 %r<2>;\n"
			  "	.reg .pred %p<3>;\n"
			  "	ld.param.u64 %rd1, [word];\n"
			  "	mov.u64 %rd2, %clock64;\n"
			  "again:\n"
			  "	mov.u64 %rd3, %clock64;\n"
			  "	sub.u64 %rd4, %rd3, %rd2;\n"
			  "	setp.gt.u64 %p2, %rd4, 6000000000;\n"
			  "	@%p2 ret;\n"
			  "	ld.volatile.global.u32 %r1, [%rd1];\n"
			  "	setp.eq.u32 %p1, %r1, 0;\n"
			  "	@%p1 bra again;\n"
			  "	ret;\n"
			  "}\n";

/* Of the driver, what the worker does not use. */
static struct {
	__typeof__(cuMemAlloc_v2) *cuMemAlloc_v2;
	__typeof__(cuMemFree_v2) *cuMemFree_v2;
	__typeof__(cuMemcpyDtoH_v2) *cuMemcpyDtoH_v2;
	__typeof__(cuLibraryGetKernel) *cuLibraryGetKernel;
	__typeof__(cuLaunchKernel) *cuLaunchKernel;
	__typeof__(cuStreamWaitValue32_v2) *cuStreamWaitValue32_v2;
} driver;

static CUlibrary library;
static CUfunction where, append, spin;
static unsigned int all;    /* multiprocessors */
static unsigned int *words; /* pinned: gates that streams wait at */
static CUdeviceptr memory;

struct fixture {
	struct gpd_session session;
	struct gpd_ledger_session line;
	struct gpd_context context;
	_Atomic int told;
	CUresult result;
};

static CUfunction
kernel(const char *name)
{
	CUfunction function;
	CUkernel found;

	assert_int_equal(driver.cuLibraryGetKernel(&found, library, name), CUDA_SUCCESS);
	assert_int_equal(gpd_driver.cuKernelGetFunction(&function, found), CUDA_SUCCESS);
	return function;
}

static bool
find_functions(void)
{
	void *handle = dlopen(getenv("GP_TEST_DRIVER"), RTLD_NOW);
	const struct {
		const char *name;
		void *where;
	} functions[] = {
		{ "cuMemAlloc_v2", &driver.cuMemAlloc_v2 },
		{ "cuMemFree_v2", &driver.cuMemFree_v2 },
		{ "cuMemcpyDtoH_v2", &driver.cuMemcpyDtoH_v2 },
		{ "cuLibraryGetKernel", &driver.cuLibraryGetKernel },
		{ "cuLaunchKernel", &driver.cuLaunchKernel },
		{ "cuStreamWaitValue32_v2", &driver.cuStreamWaitValue32_v2 },
	};

	for (size_t i = 0; handle && i < sizeof(functions) / sizeof(functions[0]); i++) {
		void *symbol = dlsym(handle, functions[i].name);

		if (!symbol)
			return false;
		memcpy(functions[i].where, &symbol, sizeof(symbol));
	}
	return handle != NULL;
}

static int
start(void **state)
{
	struct gpd_device *device = &gpd_worker.devices[0];
	char error[512];
	int count;

	alarm(100);
	(void)setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
	if (gpd_driver_open(getenv("GP_TEST_DRIVER"), error, sizeof(error)) || !find_functions())
		return -1;
	gpd_worker.device_count = 1;
	if (gpd_driver.cuInit(0) || gpd_driver.cuDevicePrimaryCtxRetain(&device->primary, 0) ||
	    gpd_device_enter(0) ||
	    gpd_driver.cuDeviceGetAttribute(&count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0))
		return -1;
	device->multiprocessors = count;
	all = (unsigned int)count;
	if (gpd_driver.cuLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0) ||
	    gpd_driver.cuMemHostAlloc((void **)&words, 4096, 0) ||
	    driver.cuMemAlloc_v2(&memory, 1 << 20))
		return -1;
	where = kernel("where");
	append = kernel("append");
	spin = kernel("spin");
	gpd_partition_start(0);
	return gpd_wait_page_setup();
}

static int
stop(void **state)
{
	gpd_partition_stop(0);
	return driver.cuMemFree_v2(memory) || gpd_driver.cuMemFreeHost(words) ||
			       gpd_driver.cuLibraryUnload(library)
		       ? -1
		       : 0;
}

static void
make(struct fixture *f, uint32_t id, unsigned int flags)
{
	assert_int_equal(gpd_stream_create(&f->session, &f->context, id, flags, 0, id == LEGACY),
			 CUDA_SUCCESS);
}

static int
setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	memset(words, 0, 4096);
	if (f)
		f->session.account.line = &f->line;
	if (!f || gpd_driver.cuMemsetD8Async(memory, 0, 1 << 20, NULL) ||
	    gpd_driver.cuCtxSynchronize() ||
	    gpd_handle_add(&f->session.handles, GPD_KIND_CONTEXT, 1, &f->context.handle) ||
	    gpd_wait_start(&f->session))
		return -1;
	pthread_mutex_init(&f->session.leaving_lock, NULL);
	make(f, LEGACY, 0);
	make(f, A, 0);
	make(f, B, 0);
	make(f, FREE, CU_STREAM_NON_BLOCKING);
	*state = f;
	return 0;
}

/* As a session ends. */
static int
teardown(void **state)
{
	struct fixture *f = *state;

	gpd_stream_finish_all(&f->session);
	gpd_wait_stop(&f->session);
	gpd_stream_destroy_all(&f->session);
	gpd_partition_forget(&f->session.shares);
	gpd_handle_remove(&f->session.handles, &f->context.handle);
	gpd_handle_fini(&f->session.handles);
	pthread_mutex_destroy(&f->session.leaving_lock);
	if (f->session.leaving)
		return -1;
	free(f);
	return 0;
}

static struct gpd_stream *
begin(struct fixture *f, uint32_t id)
{
	struct gpd_stream *stream = NULL;

	assert_int_equal(gpd_stream_begin(&f->session, id, &stream), CUDA_SUCCESS);
	return stream;
}

static void
launch(CUfunction function, unsigned int blocks, struct gpd_stream *stream, void **params)
{
	assert_int_equal(driver.cuLaunchKernel(function, blocks, 1, 1, 1, 1, 1, 0, stream->driver,
					       params, NULL),
			 CUDA_SUCCESS);
}

static void
append_value(struct fixture *f, uint32_t id, unsigned int value)
{
	launch(append, 1, begin(f, id), (void *[]){ &memory, &value });
}

static CUdeviceptr
gate(unsigned int i)
{
	return (CUdeviceptr)(uintptr_t)&words[i];
}

/* The stream does nothing more until the gate is opened. */
static void
wait_at_gate(struct fixture *f, uint32_t id, unsigned int i)
{
	assert_int_equal(driver.cuStreamWaitValue32_v2(begin(f, id)->driver, gate(i), 1,
						       CU_STREAM_WAIT_VALUE_EQ),
			 CUDA_SUCCESS);
}

static void
open_gate(unsigned int i)
{
	__atomic_store_n(&words[i], 1, __ATOMIC_SEQ_CST);
}

static void
set_share(struct fixture *f, uint32_t multiprocessors)
{
	(void)gpd_partition_assign(&f->session.shares, 0, 0, multiprocessors);
}

static void
tell(struct gpd_session *session, void *arg, CUresult result)
{
	struct fixture *f = arg;

	f->result = result;
	atomic_fetch_add(&f->told, 1);
}

static bool
within_seconds(bool (*holds)(struct fixture *f), struct fixture *f)
{
	for (int i = 0; i < 5000; i++) {
		if (holds(f))
			return true;
		usleep(1000);
	}
	return false;
}

static bool
is_told(struct fixture *f)
{
	return atomic_load(&f->told) == 1;
}

/* Waits for all that the session's streams were given, as a client would. */
static void
synchronize(struct fixture *f)
{
	atomic_store(&f->told, 0);
	assert_int_equal(gpd_wait_add_all(&f->session, NULL, tell, f), CUDA_SUCCESS);
	assert_true(within_seconds(is_told, f));
	assert_int_equal(f->result, CUDA_SUCCESS);
}

static bool
none_is_leaving(struct fixture *f)
{
	bool none;

	pthread_mutex_lock(&f->session.leaving_lock);
	none = f->session.leaving == NULL;
	pthread_mutex_unlock(&f->session.leaving_lock);
	return none;
}

static void
check_list(unsigned int first, unsigned int count)
{
	unsigned int list[1001];

	assert_in_range(count, 0, 1000);
	assert_int_equal(driver.cuMemcpyDtoH_v2(list, memory, (count + 1) * sizeof(list[0])),
			 CUDA_SUCCESS);
	assert_int_equal(list[0], count);
	for (unsigned int i = 0; i < count; i++)
		assert_int_equal(list[1 + i], first + i);
}

/* On how many multiprocessors a grid in that stream runs. */
static unsigned int
spread(struct fixture *f, uint32_t id)
{
	unsigned int ran[BLOCKS], seen[256] = { 0 }, count = 0;
	CUdeviceptr out = memory + (1 << 19);

	launch(where, BLOCKS, begin(f, id), (void *[]){ &out });
	synchronize(f);
	assert_int_equal(driver.cuMemcpyDtoH_v2(ran, out, sizeof(ran)), CUDA_SUCCESS);
	for (unsigned int i = 0; i < BLOCKS; i++)
		count += !seen[ran[i] & 255]++;
	return count;
}

static void
kernels_run_on_the_sessions_share(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(spread(f, A), all);
	set_share(f, 8);
	assert_int_equal(spread(f, A), 8);
	assert_int_equal(spread(f, LEGACY), 8);
	make(f, 9, CU_STREAM_NON_BLOCKING);
	assert_int_equal(spread(f, 9), 8);
	set_share(f, 20);
	assert_int_equal(spread(f, FREE), 20);
	set_share(f, 0);
	assert_int_equal(spread(f, B), all);
	assert_true(within_seconds(none_is_leaving, f));
}

static void
two_sessions_run_on_different_multiprocessors(void **state)
{
	struct fixture *f = *state, *g;
	unsigned int ran[2][BLOCKS], users[256] = { 0 }, count[4] = { 0 };
	CUdeviceptr out[2] = { memory + (1 << 18), memory + (1 << 19) };

	assert_int_equal(setup((void **)&g), 0);
	set_share(f, all / 4 * 2);
	set_share(g, all / 4 * 2);
	launch(where, BLOCKS, begin(f, A), (void *[]){ &out[0] });
	launch(where, BLOCKS, begin(g, A), (void *[]){ &out[1] });
	synchronize(f);
	synchronize(g);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(driver.cuMemcpyDtoH_v2(ran[i], out[i], sizeof(ran[i])),
				 CUDA_SUCCESS);
		for (unsigned int k = 0; k < BLOCKS; k++)
			users[ran[i][k] & 255] |= 1u << i;
	}
	for (int i = 0; i < 256; i++)
		count[users[i]]++;
	assert_int_equal(count[1], all / 4 * 2);
	assert_int_equal(count[2], all / 4 * 2);
	assert_int_equal(count[3], 0);
	assert_int_equal(teardown((void **)&g), 0);
}

static void
stream_without_work_moves_at_once(void **state)
{
	struct fixture *f = *state;
	CUstream before;

	append_value(f, A, 0);
	synchronize(f);
	before = gpd_stream_get(&f->session, A)->driver;
	set_share(f, 8);
	assert_ptr_equal(gpd_stream_get(&f->session, A)->driver, before);
	assert_ptr_not_equal(begin(f, A)->driver, before);
	assert_null(f->session.leaving);
}

static void
stream_whose_work_is_done_is_done_after_the_move(void **state)
{
	struct fixture *f = *state;
	const struct gpd_stream *stream = gpd_stream_get(&f->session, A);

	for (unsigned int i = 0; i < 20; i++) {
		CUstream before = stream->driver;

		append_value(f, A, i);
		/* The responder is about to note it; or nobody has told the session. */
		if (i % 2)
			synchronize(f);
		else
			assert_int_equal(gpd_driver.cuStreamSynchronize(before), CUDA_SUCCESS);
		set_share(f, i % 2 ? 4 : 8);
		(void)begin(f, FREE);
		assert_ptr_not_equal(stream->driver, before);
		assert_int_equal(gpd_driver.cuStreamQuery(stream->driver), CUDA_SUCCESS);
	}
}

static void
work_goes_on_where_it_is_and_new_work_follows(void **state)
{
	struct fixture *f = *state;
	CUstream before;

	wait_at_gate(f, A, 0);
	for (unsigned int i = 0; i < 50; i++)
		append_value(f, A, i);
	before = begin(f, A)->driver;
	set_share(f, 8);
	for (unsigned int i = 50; i < 100; i++)
		append_value(f, A, i);
	assert_ptr_not_equal(begin(f, A)->driver, before);
	set_share(f, 4);
	for (unsigned int i = 100; i < 150; i++)
		append_value(f, A, i);
	assert_false(none_is_leaving(f));
	assert_false(gpd_stream_is_idle(gpd_stream_get(&f->session, A)));
	open_gate(0);
	synchronize(f);
	check_list(0, 150);
	assert_true(within_seconds(none_is_leaving, f));
}

static void
who_waits_for_a_stream_waits_for_what_it_had(void **state)
{
	struct fixture *f = *state;

	wait_at_gate(f, A, 0);
	assert_int_equal(gpd_wait_add(&f->session, gpd_stream_get(&f->session, A), tell, f),
			 CUDA_SUCCESS);
	set_share(f, 8);
	(void)begin(f, A);
	usleep(20000);
	assert_int_equal(atomic_load(&f->told), 0);
	open_gate(0);
	assert_true(within_seconds(is_told, f));
	assert_int_equal(f->result, CUDA_SUCCESS);
	synchronize(f);
}

static void
events_recorded_before_stay_valid(void **state)
{
	struct fixture *f = *state;
	CUevent event;

	assert_int_equal(gpd_driver.cuEventCreate(&event, 0), CUDA_SUCCESS);
	wait_at_gate(f, A, 0);
	append_value(f, A, 0);
	assert_int_equal(gpd_driver.cuEventRecord(event, begin(f, A)->driver), CUDA_SUCCESS);
	set_share(f, 8);
	assert_int_equal(gpd_driver.cuStreamWaitEvent(begin(f, FREE)->driver, event, 0),
			 CUDA_SUCCESS);
	append_value(f, FREE, 1);
	set_share(f, 0);
	assert_int_equal(gpd_driver.cuStreamWaitEvent(begin(f, B)->driver, event, 0), CUDA_SUCCESS);
	assert_int_equal(gpd_driver.cuEventQuery(event), CUDA_ERROR_NOT_READY);
	open_gate(0);
	synchronize(f);
	assert_true(within_seconds(none_is_leaving, f));
	assert_int_equal(gpd_driver.cuEventQuery(event), CUDA_SUCCESS);
	check_list(0, 2);
	assert_int_equal(gpd_driver.cuEventDestroy_v2(event), CUDA_SUCCESS);
}

static void
legacy_stream_keeps_its_order(void **state)
{
	struct fixture *f = *state;

	wait_at_gate(f, A, 0);
	append_value(f, A, 0);
	set_share(f, 8);
	append_value(f, LEGACY, 1);
	set_share(f, 4);
	append_value(f, B, 2);
	append_value(f, LEGACY, 3);
	set_share(f, 0);
	append_value(f, A, 4);
	usleep(20000);
	open_gate(0);
	synchronize(f);
	check_list(0, 5);
}

static CUresult
ask_stream(struct fixture *f, uint32_t id)
{
	const struct gp_args_cuStreamQuery args = { .hStream = id };

	return gpd_cuStreamQuery(&f->session, &args);
}

/* Also when something else was put behind it. */
static void
stream_is_done_when_the_legacy_stream_that_waited_for_it_is(void **state)
{
	struct fixture *f = *state;

	append_value(f, A, 0);
	append_value(f, LEGACY, 1);
	wait_at_gate(f, B, 0);
	assert_int_equal(driver.cuStreamWaitValue32_v2(gpd_stream_get(&f->session, A)->driver,
						       gate(0), 1, CU_STREAM_WAIT_VALUE_EQ),
			 CUDA_SUCCESS);
	assert_int_equal(gpd_wait_add(&f->session, gpd_stream_get(&f->session, LEGACY), tell, f),
			 CUDA_SUCCESS);
	assert_true(within_seconds(is_told, f));
	while (!gpd_wait_none(&f->session))
		usleep(1000);
	assert_int_equal(ask_stream(f, A), CUDA_SUCCESS);
	assert_int_equal(ask_stream(f, B), CUDA_ERROR_NOT_READY);
	assert_int_equal(ask_stream(f, LEGACY), CUDA_ERROR_NOT_READY);
	append_value(f, A, 2);
	assert_int_equal(ask_stream(f, A), CUDA_ERROR_NOT_READY);
	open_gate(0);
	synchronize(f);
	check_list(0, 3);
}

static void
barrier_holds_for_streams_that_moved(void **state)
{
	struct fixture *f = *state;
	struct gpd_stream *stream;

	wait_at_gate(f, A, 0);
	append_value(f, A, 0);
	stream = begin(f, A);
	assert_int_equal(gpd_stream_barrier(&f->session, stream), CUDA_SUCCESS);
	set_share(f, 8);
	append_value(f, FREE, 1);
	stream = begin(f, FREE);
	assert_int_equal(gpd_stream_barrier(&f->session, stream), CUDA_SUCCESS);
	set_share(f, 4);
	append_value(f, B, 2);
	usleep(20000);
	open_gate(0);
	synchronize(f);
	check_list(0, 3);
}

static void
dropped_stream_finishes_where_it_is(void **state)
{
	struct fixture *f = *state;

	wait_at_gate(f, A, 0);
	append_value(f, A, 0);
	gpd_stream_drop(&f->session, gpd_stream_get(&f->session, A));
	set_share(f, 8);
	(void)begin(f, FREE);
	wait_at_gate(f, B, 1);
	append_value(f, B, 1);
	set_share(f, 4);
	append_value(f, B, 2);
	gpd_stream_drop(&f->session, gpd_stream_get(&f->session, B));
	open_gate(0);
	usleep(20000);
	open_gate(1);
	synchronize(f);
	check_list(0, 3);
	assert_true(within_seconds(none_is_leaving, f));
}

/* The teardown must not hang, and nothing may run after it. */
static void
session_may_end_while_a_stream_is_left(void **state)
{
	struct fixture *f = *state;

	wait_at_gate(f, A, 0);
	append_value(f, A, 0);
	set_share(f, 8);
	append_value(f, A, 1);
	set_share(f, 4);
	append_value(f, A, 2);
	assert_false(none_is_leaving(f));
	/* What cannot be cancelled is waited for. */
	if (!gpd_driver.gpSoftStreamCancel)
		open_gate(0);
}

static uint64_t
now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static void
moving_does_not_wait_for_kernels(void **state)
{
	struct fixture *f = *state, *g;
	CUdeviceptr word = memory + 65536;
	uint64_t begun, first, again, last;
	CUstream plain;

	assert_int_equal(setup((void **)&g), 0);
	set_share(f, 10);
	launch(spin, 1, begin(f, A), (void *[]){ &word });
	begun = now_us();
	set_share(f, 12);
	append_value(f, FREE, 0);
	set_share(g, 6);
	append_value(g, A, 1);
	synchronize(g);
	first = now_us() - begun;
	/* With green contexts that there are by now. */
	begun = now_us();
	set_share(f, 10);
	append_value(f, FREE, 1);
	again = now_us() - begun;
	/* And none is kept. */
	gpd_partition_idle_max = 0;
	begun = now_us();
	set_share(f, 0);
	append_value(f, FREE, 2);
	set_share(g, 0);
	append_value(g, A, 3);
	synchronize(g);
	last = now_us() - begun;
	gpd_partition_idle_max = 16;
	assert_false(gpd_stream_is_idle(gpd_stream_get(&f->session, A)));
	assert_in_range(first + again + last, 0, 1000000);
	print_message("# moved in %u us, back in %u us, away for good in %u us\n",
		      (unsigned int)first, (unsigned int)again, (unsigned int)last);
	assert_int_equal(gpd_driver.cuStreamCreateWithPriority(&plain, CU_STREAM_NON_BLOCKING, 0),
			 CUDA_SUCCESS);
	assert_int_equal(gpd_driver.cuMemsetD32Async(word, 1, 1, plain), CUDA_SUCCESS);
	synchronize(f);
	assert_int_equal(gpd_driver.cuStreamDestroy_v2(plain), CUDA_SUCCESS);
	assert_int_equal(teardown((void **)&g), 0);
}

static void
events_outlive_the_green_context_that_they_were_recorded_in(void **state)
{
	struct fixture *f = *state;
	CUevent first, last;
	float ms = -1;

	assert_int_equal(gpd_driver.cuEventCreate(&first, 0), CUDA_SUCCESS);
	assert_int_equal(gpd_driver.cuEventCreate(&last, 0), CUDA_SUCCESS);
	set_share(f, 28);
	assert_int_equal(gpd_driver.cuEventRecord(first, begin(f, A)->driver), CUDA_SUCCESS);
	append_value(f, A, 0);
	gpd_partition_idle_max = 2;
	for (unsigned int i = 1; i <= 25; i++) {
		set_share(f, i % 13 * 2 + 2);
		append_value(f, A, i);
		synchronize(f);
	}
	assert_true(within_seconds(none_is_leaving, f));
	set_share(f, 0);
	assert_int_equal(gpd_driver.cuEventRecord(last, begin(f, A)->driver), CUDA_SUCCESS);
	assert_int_equal(gpd_driver.cuStreamWaitEvent(begin(f, B)->driver, first, 0), CUDA_SUCCESS);
	synchronize(f);
	assert_int_equal(gpd_driver.cuEventQuery(first), CUDA_SUCCESS);
	assert_int_equal(gpd_driver.cuEventElapsedTime_v2(&ms, first, last), CUDA_SUCCESS);
	assert_true(ms > 0);
	gpd_partition_idle_max = 16;
	check_list(0, 26);
	assert_int_equal(gpd_driver.cuEventDestroy_v2(first), CUDA_SUCCESS);
	assert_int_equal(gpd_driver.cuEventDestroy_v2(last), CUDA_SUCCESS);
}

static CUresult (*real_create)(CUstream *stream, CUgreenCtx ctx, unsigned int flags, int priority);
static int fails_left;

static CUresult
failing_create(CUstream *stream, CUgreenCtx ctx, unsigned int flags, int priority)
{
	if (fails_left-- > 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	return real_create(stream, ctx, flags, priority);
}

static void
streams_that_cannot_move_stay_and_try_again(void **state)
{
	struct fixture *f = *state;
	CUstream before = begin(f, A)->driver;

	real_create = gpd_driver.cuGreenCtxStreamCreate;
	gpd_driver.cuGreenCtxStreamCreate = failing_create;
	fails_left = 1;
	set_share(f, 8);
	assert_ptr_equal(begin(f, A)->driver, before);
	append_value(f, A, 0);
	assert_ptr_equal(begin(f, A)->driver, before);
	usleep(120000);
	assert_ptr_not_equal(begin(f, A)->driver, before);
	gpd_driver.cuGreenCtxStreamCreate = real_create;
	assert_int_equal(spread(f, A), 8);
	check_list(0, 1);
}

struct changer {
	struct fixture *f;
	_Atomic bool stop;
	unsigned int changes;
};

static void *
change(void *arg)
{
	struct changer *changer = arg;
	unsigned int seed = 3;

	while (!atomic_load(&changer->stop)) {
		set_share(changer->f, (uint32_t)rand_r(&seed) % all);
		changer->changes++;
		usleep(300);
	}
	return NULL;
}

static void
share_changes_while_streams_work(void **state)
{
	struct changer changer = { .f = *state };
	struct fixture *f = *state;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, change, &changer), 0);
	for (unsigned int i = 0; i < 900; i++) {
		/* Each of these waits for all before it. */
		append_value(f, i % 3 ? LEGACY : i % 2 ? A : B, i);
		if (i % 100 == 99)
			synchronize(f);
	}
	synchronize(f);
	atomic_store(&changer.stop, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(changer.changes > 3);
	check_list(0, 900);
	assert_true(within_seconds(none_is_leaving, f));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(kernels_run_on_the_sessions_share, setup, teardown),
		cmocka_unit_test_setup_teardown(two_sessions_run_on_different_multiprocessors,
						setup, teardown),
		cmocka_unit_test_setup_teardown(stream_without_work_moves_at_once, setup, teardown),
		cmocka_unit_test_setup_teardown(stream_whose_work_is_done_is_done_after_the_move,
						setup, teardown),
		cmocka_unit_test_setup_teardown(work_goes_on_where_it_is_and_new_work_follows,
						setup, teardown),
		cmocka_unit_test_setup_teardown(who_waits_for_a_stream_waits_for_what_it_had, setup,
						teardown),
		cmocka_unit_test_setup_teardown(events_recorded_before_stay_valid, setup, teardown),
		cmocka_unit_test_setup_teardown(legacy_stream_keeps_its_order, setup, teardown),
		cmocka_unit_test_setup_teardown(
			stream_is_done_when_the_legacy_stream_that_waited_for_it_is, setup,
			teardown),
		cmocka_unit_test_setup_teardown(barrier_holds_for_streams_that_moved, setup,
						teardown),
		cmocka_unit_test_setup_teardown(dropped_stream_finishes_where_it_is, setup,
						teardown),
		cmocka_unit_test_setup_teardown(session_may_end_while_a_stream_is_left, setup,
						teardown),
		cmocka_unit_test_setup_teardown(moving_does_not_wait_for_kernels, setup, teardown),
		cmocka_unit_test_setup_teardown(
			events_outlive_the_green_context_that_they_were_recorded_in, setup,
			teardown),
		cmocka_unit_test_setup_teardown(streams_that_cannot_move_stay_and_try_again, setup,
						teardown),
		cmocka_unit_test_setup_teardown(share_changes_while_streams_work, setup, teardown),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
