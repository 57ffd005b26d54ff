/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/server/move_fixture.h"

#include "server/worker/device/device.h"
#include "server/worker/device/marker_page.h"
#include "server/worker/stream/responder.h"
#include "tests/test.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

static const char ptx[] = ".version 7.0\n"
			  ".target sm_75\n"
			  ".address_size 64\n"
			  /* Stores the multiprocessor of each block. A block runs long enough that
			   * no multiprocessor runs a second one while another is idle. */
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
			  /* Appends its argument to a list, whose first word is the length. */
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
			  /* Runs until the word is set, for at most some seconds. */
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

struct move_driver move_driver;
CUfunction move_where, move_append, move_spin;
unsigned int move_all;
CUdeviceptr move_memory;

static CUlibrary library;
static unsigned int *words; /* the gates */

static CUfunction
kernel(const char *name)
{
	CUfunction function;
	CUkernel found;

	assert_int_equal(move_driver.cuLibraryGetKernel(&found, library, name), CUDA_SUCCESS);
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
		{ "cuMemAlloc_v2", &move_driver.cuMemAlloc_v2 },
		{ "cuMemFree_v2", &move_driver.cuMemFree_v2 },
		{ "cuMemcpyDtoH_v2", &move_driver.cuMemcpyDtoH_v2 },
		{ "cuLibraryGetKernel", &move_driver.cuLibraryGetKernel },
		{ "cuLaunchKernel", &move_driver.cuLaunchKernel },
		{ "cuStreamWaitValue32_v2", &move_driver.cuStreamWaitValue32_v2 },
	};

	for (size_t i = 0; handle && i < sizeof(functions) / sizeof(functions[0]); i++) {
		void *symbol = dlsym(handle, functions[i].name);

		if (!symbol)
			return false;
		memcpy(functions[i].where, &symbol, sizeof(symbol));
	}
	return handle != NULL;
}

int
move_start(void **state)
{
	struct gpd_device *device = &gpd_devices.all[0];
	char error[512];
	int count;

	alarm(100);
	(void)setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
	if (gpd_driver_open(getenv("GP_TEST_DRIVER"), true, error, sizeof(error)) ||
	    !find_functions())
		return -1;
	gpd_devices.count = 1;
	atomic_store(&gpd_devices.all[0].has_context, true);
	if (gpd_driver.cuInit(0) || gpd_driver.cuDevicePrimaryCtxRetain(&device->primary, 0) ||
	    gpd_device_enter(0) ||
	    gpd_driver.cuDeviceGetAttribute(&count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0))
		return -1;
	device->multiprocessors = count;
	move_all = (unsigned int)count;
	if (gpd_driver.cuLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0) ||
	    gpd_driver.cuMemHostAlloc((void **)&words, 4096, 0) ||
	    move_driver.cuMemAlloc_v2(&move_memory, 1 << 20))
		return -1;
	move_where = kernel("where");
	move_append = kernel("append");
	move_spin = kernel("spin");
	gpd_partition_start(0);
	return gpd_marker_page_setup();
}

int
move_stop(void **state)
{
	gpd_partition_stop(0);
	return move_driver.cuMemFree_v2(move_memory) || gpd_driver.cuMemFreeHost(words) ||
			       gpd_driver.cuLibraryUnload(library)
		       ? -1
		       : 0;
}

void
move_make_stream(struct move_fixture *f, uint32_t id, unsigned int flags)
{
	assert_int_equal(gpd_stream_create(&f->session, &f->context, id, flags, 0, id == LEGACY),
			 CUDA_SUCCESS);
}

int
move_setup(void **state)
{
	struct move_fixture *f = calloc(1, sizeof(*f));
	int fd;

	memset(words, 0, 4096);
	if (f)
		f->session.account.ledger = f->ledger = gpd_ledger_create(&fd);
	if (f)
		f->session.streams = &f->streams;
	if (!f || !f->ledger)
		return -1;
	(void)close(fd);
	f->session.account.entry = gpd_ledger_open(f->ledger, 1, 0, 0);
	if (!f->session.account.entry ||
	    gpd_driver.cuMemsetD8Async(move_memory, 0, 1 << 20, NULL) ||
	    gpd_driver.cuCtxSynchronize() ||
	    gpd_handle_add(&f->session.handles, GPD_KIND_CONTEXT, 1, &f->context.handle) ||
	    gpd_wait_start(&f->session))
		return -1;
	move_make_stream(f, LEGACY, 0);
	move_make_stream(f, A, 0);
	move_make_stream(f, B, 0);
	move_make_stream(f, FREE, CU_STREAM_NON_BLOCKING);
	*state = f;
	return 0;
}

/* The same steps as at the end of a session. */
int
move_teardown(void **state)
{
	struct move_fixture *f = *state;

	gpd_stream_cancel_all(&f->session);
	(void)gpd_driver.cuCtxSynchronize();
	gpd_wait_stop(&f->session);
	gpd_stream_destroy_all(&f->session);
	gpd_partition_unassign(&f->session.shares);
	gpd_handle_remove(&f->session.handles, &f->context.handle);
	gpd_handle_fini(&f->session.handles);
	gpd_ledger_destroy(f->ledger);
	free(f);
	return 0;
}

struct gpd_stream *
move_begin(struct move_fixture *f, uint32_t id)
{
	struct gpd_stream *stream = NULL;

	assert_int_equal(gpd_stream_begin(&f->session, id, &stream), CUDA_SUCCESS);
	return stream;
}

void
move_launch(CUfunction function, unsigned int blocks, struct gpd_stream *stream, void **params)
{
	assert_int_equal(move_driver.cuLaunchKernel(function, blocks, 1, 1, 1, 1, 1, 0,
						    stream->driver, params, NULL),
			 CUDA_SUCCESS);
}

void
move_append_value(struct move_fixture *f, uint32_t id, unsigned int value)
{
	move_launch(move_append, 1, move_begin(f, id), (void *[]){ &move_memory, &value });
}

CUdeviceptr
move_gate(unsigned int i)
{
	return (CUdeviceptr)(uintptr_t)&words[i];
}

void
move_wait_at_gate(struct move_fixture *f, uint32_t id, unsigned int i)
{
	assert_int_equal(move_driver.cuStreamWaitValue32_v2(move_begin(f, id)->driver, move_gate(i),
							    1, CU_STREAM_WAIT_VALUE_EQ),
			 CUDA_SUCCESS);
}

void
move_open_gate(unsigned int i)
{
	__atomic_store_n(&words[i], 1, __ATOMIC_SEQ_CST);
}

void
move_set_share(struct move_fixture *f, uint32_t multiprocessors)
{
	(void)gpd_partition_assign(&f->session.shares, 0, 0, multiprocessors);
}

void
move_tell(struct gpd_session *session, void *arg, CUresult result)
{
	struct move_fixture *f = arg;

	f->result = result;
	atomic_fetch_add(&f->told, 1);
}

bool
move_within_seconds(bool (*holds)(struct move_fixture *f), struct move_fixture *f)
{
	for (int i = 0; i < 5000; i++) {
		if (holds(f))
			return true;
		usleep(1000);
	}
	return false;
}

bool
move_is_told(struct move_fixture *f)
{
	return atomic_load(&f->told) == 1;
}

void
move_synchronize(struct move_fixture *f)
{
	atomic_store(&f->told, 0);
	assert_int_equal(gpd_wait_add_all(&f->session, NULL, move_tell, f), CUDA_SUCCESS);
	assert_true(move_within_seconds(move_is_told, f));
	assert_int_equal(f->result, CUDA_SUCCESS);
}

bool
move_none_is_leaving(struct move_fixture *f)
{
	const struct gpd_stream *stream;

	gpd_stream_reap(&f->session);
	LL_SEARCH_SCALAR(f->session.streams->list, stream, context, NULL);
	return !stream;
}

void
move_check_list(unsigned int first, unsigned int count)
{
	unsigned int list[1001];

	assert_in_range(count, 0, 1000);
	assert_int_equal(
		move_driver.cuMemcpyDtoH_v2(list, move_memory, (count + 1) * sizeof(list[0])),
		CUDA_SUCCESS);
	assert_int_equal(list[0], count);
	for (unsigned int i = 0; i < count; i++)
		assert_int_equal(list[1 + i], first + i);
}

unsigned int
move_spread(struct move_fixture *f, uint32_t id)
{
	unsigned int ran[BLOCKS], seen[256] = { 0 }, count = 0;
	CUdeviceptr out = move_memory + (1 << 19);

	move_launch(move_where, BLOCKS, move_begin(f, id), (void *[]){ &out });
	move_synchronize(f);
	assert_int_equal(move_driver.cuMemcpyDtoH_v2(ran, out, sizeof(ran)), CUDA_SUCCESS);
	for (unsigned int i = 0; i < BLOCKS; i++)
		count += !seen[ran[i] & 255]++;
	return count;
}
