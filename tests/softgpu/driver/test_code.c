/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/softgpu/driver/common.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int
load(const char *name, CUlibrary *library)
{
	void *image = gs_test_file(name, NULL);
	int r = cuLibraryLoadData(library, image, NULL, NULL, 0, NULL, NULL, 0);

	free(image);
	return r;
}

static int
run_int(CUfunction function, void **params, CUdeviceptr out)
{
	int value = -1;

	check(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	check(cuMemcpyDtoH_v2(&value, out, sizeof(value)));
	return value;
}

UNIT_TEST(library_lists_its_kernels)
{
	CUlibrary library = gs_test_library(), found;
	CUkernel kernel, kernels[32];
	CUfunction function;
	unsigned int count;
	const char *name;

	check(cuLibraryGetKernelCount(&count, library));
	assert_int_equal(count, 13);
	check(cuLibraryEnumerateKernels(kernels, 32, library));
	for (unsigned int i = 0; i < count; i++) {
		check(cuKernelGetName(&name, kernels[i]));
		check(cuLibraryGetKernel(&kernel, library, name));
		assert_ptr_equal(kernel, kernels[i]);
		check(cuKernelGetFunction(&function, kernel));
		check(cuFuncGetName(&name, function));
		check(cuKernelGetLibrary(&found, kernel));
		assert_ptr_equal(found, library);
	}
	check_is(cuLibraryGetKernel(&kernel, library, "nothing"), CUDA_ERROR_NOT_FOUND);
	check_is(cuLibraryGetKernel(&kernel, (CUlibrary)&count, "spin"), CUDA_ERROR_INVALID_HANDLE);
	check_is(cuKernelGetName(&name, (CUkernel)&count), CUDA_ERROR_INVALID_HANDLE);
}

UNIT_TEST(module_and_library_agree)
{
	void *image = gs_test_file("kernels.fatbin", NULL);
	CUmodule module, of_library, found;
	CUfunction function, functions[32];
	unsigned int count;
	const char *name;

	check(cuModuleLoadData(&module, image));
	free(image);
	check(cuModuleGetFunctionCount(&count, module));
	assert_int_equal(count, 13);
	check(cuModuleEnumerateFunctions(functions, 32, module));
	check(cuFuncGetName(&name, functions[0]));
	check(cuModuleGetFunction(&function, module, "vector_add"));
	check(cuFuncGetModule(&found, function));
	assert_ptr_equal(found, module);
	check(cuFuncLoad(function));
	check_is(cuModuleGetFunction(&function, module, "nothing"), CUDA_ERROR_NOT_FOUND);

	check(cuLibraryGetModule(&of_library, gs_test_library()));
	check(cuModuleGetFunction(&function, of_library, "vector_add"));
	check_is(cuModuleUnload(of_library), CUDA_ERROR_INVALID_HANDLE);
	check(cuModuleUnload(module));
	check_is(cuModuleUnload(module), CUDA_ERROR_INVALID_HANDLE);
	check_is(cuFuncGetName(&name, functions[0]), CUDA_ERROR_INVALID_HANDLE);
}

UNIT_TEST(parameters_have_offsets_and_sizes)
{
	static const size_t expected[][2] = {
		{ 0, 1 }, { 8, 8 }, { 16, 2 }, { 24, 16 }, { 40, 8 }
	};
	CUfunction function = gs_test_kernel("many_params");
	size_t offset, size;

	for (unsigned int i = 0; i < 5; i++) {
		check(cuKernelGetParamInfo((CUkernel)function, i, &offset, &size));
		assert_int_equal(offset, expected[i][0]);
		assert_int_equal(size, expected[i][1]);
	}
	check(cuKernelGetParamInfo((CUkernel)function, 0, &offset, NULL));
	check_is(cuKernelGetParamInfo((CUkernel)function, 5, &offset, &size),
		 CUDA_ERROR_INVALID_VALUE);
	check_is(cuFuncGetParamInfo(function, 5, &offset, &size), CUDA_ERROR_INVALID_VALUE);
}

UNIT_TEST(parameters_come_as_pointers_or_packed)
{
	CUfunction function = gs_test_kernel("many_params");
	struct mixed {
		char c;
		double d;
	} mixed = { 4, 5 };
	char a = 1, packed[48] = { 0 };
	double b = 2;
	short c = 3;
	CUdeviceptr out;
	size_t size = sizeof(packed);
	void *params[] = { &a, &b, &c, &mixed, &out };
	void *extra[] = { CU_LAUNCH_PARAM_BUFFER_POINTER, packed, CU_LAUNCH_PARAM_BUFFER_SIZE,
			  &size, CU_LAUNCH_PARAM_END };
	int value;

	check(cuMemAlloc_v2(&out, 4));
	assert_int_equal(run_int(function, params, out), 15);

	packed[0] = 10;
	memcpy(packed + 8, &b, 8);
	memcpy(packed + 16, &c, 2);
	memcpy(packed + 24, &mixed, sizeof(mixed));
	memcpy(packed + 40, &out, 8);
	check(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra));
	check(cuMemcpyDtoH_v2(&value, out, 4));
	assert_int_equal(value, 24);
	check_is(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, extra),
		 CUDA_ERROR_INVALID_VALUE);
	check_is(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL),
		 CUDA_ERROR_INVALID_VALUE);
	size = 40;
	check_is(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra),
		 CUDA_ERROR_INVALID_VALUE);
	check(cuMemFree_v2(out));
}

UNIT_TEST(variables_can_be_read_and_written)
{
	CUlibrary library = gs_test_library();
	CUfunction function = gs_test_kernel("use_variables");
	CUdeviceptr counter, table, out;
	size_t size;
	int value;

	check(cuMemAlloc_v2(&out, 4));
	assert_int_equal(run_int(function, (void *[]){ &out }, out), 10);
	check(cuLibraryGetGlobal(&counter, &size, library, "counter"));
	assert_int_equal(size, 4);
	check(cuLibraryGetGlobal(&table, &size, library, "table"));
	assert_int_equal(size, 16);
	check(cuMemcpyDtoH_v2(&value, counter, 4));
	assert_int_equal(value, 7);
	value = 100;
	check(cuMemcpyHtoD_v2(counter, &value, 4));
	check(cuMemcpyHtoD_v2(table + 8, &value, 4));
	assert_int_equal(run_int(function, (void *[]){ &out }, out), 200);
	check_is(cuLibraryGetGlobal(&counter, &size, library, "nothing"), CUDA_ERROR_NOT_FOUND);
	check(cuMemFree_v2(out));
}

/* As nvcc's device link does it: machine code first, the objects' PTX after it. */
UNIT_TEST(relocatable_code_is_linked)
{
	void *images[] = { gs_test_file("elf_only.fatbin", NULL),
			   gs_test_file("relocatable_first.fatbin", NULL),
			   gs_test_file("relocatable_second.fatbin", NULL), NULL };
	const struct {
		uint32_t magic, version;
		const void *data;
		void *const *further;
	} wrapper = { 0x466243b1, 2, images[0], &images[1] };
	CUlibrary library;
	CUkernel kernel;
	CUdeviceptr out;

	check(cuLibraryLoadData(&library, &wrapper, NULL, NULL, 0, NULL, NULL, 0));
	check(cuLibraryGetKernel(&kernel, library, "call_other"));
	check(cuMemAlloc_v2(&out, 4));
	assert_int_equal(run_int((CUfunction)kernel, (void *[]){ &out }, out), 42);
	check(cuMemFree_v2(out));
	check(cuLibraryUnload(library));
	check_is(cuLibraryUnload(library), CUDA_ERROR_INVALID_HANDLE);
	for (unsigned int i = 0; i < 3; i++)
		free(images[i]);
}

UNIT_TEST(machine_code_alone_is_refused)
{
	CUlibrary library;

	check_is(load("elf_only.fatbin", &library), CUDA_ERROR_NO_BINARY_FOR_GPU);
	check_is(load("kernels.cubin", &library), CUDA_ERROR_NO_BINARY_FOR_GPU);
}

UNIT_TEST(broken_images_are_refused)
{
	size_t size;
	char *image = gs_test_file("kernels.fatbin", &size);
	CUlibrary library;
	CUmodule module;

	memset(image + 16, 0xff, 16);
	check_is(cuLibraryLoadData(&library, image, NULL, NULL, 0, NULL, NULL, 0),
		 CUDA_ERROR_INVALID_IMAGE);
	check_is(cuModuleLoadData(&module, "\1\2\3\4"), CUDA_ERROR_INVALID_IMAGE);
	check_is(cuModuleLoadData(&module, NULL), CUDA_ERROR_INVALID_VALUE);
	free(image);
}

UNIT_TEST(broken_ptx_is_explained_in_the_log)
{
	char log[256] = { 0 };
	CUjit_option options[] = { CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES };
	void *values[] = { log, (void *)sizeof(log) };
	CUmodule module;

	check_is(cuModuleLoadDataEx(&module,
				    ".version 9.0\n.target sm_75\n.address_size 64\n"
				    ".visible .entry k()\n{\n\tbogus.u32 %r1;\n\tret;\n}\n",
				    2, options, values),
		 CUDA_ERROR_INVALID_PTX);
	assert_non_null(strstr(log, "line"));
	assert_true((size_t)values[1] == strlen(log));
}

UNIT_TEST(attributes_follow_the_kernel)
{
	CUfunction function = gs_test_kernel("bounded");
	int value;

	check(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function));
	assert_int_equal(value, 128);
	check(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function));
	assert_int_equal(value, 1024);
	check(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_BINARY_VERSION, function));
	assert_int_equal(value, 75);
	check(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
				 function));
	assert_int_equal(value, 48 * 1024 - 1024);
	check(cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100 * 1024,
				   (CUkernel)function, 0));
	check(cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
				   (CUkernel)function, 0));
	assert_int_equal(value, 100 * 1024);
	check_is(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
				    227 * 1024),
		 CUDA_ERROR_INVALID_VALUE);
	check_is(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_NUM_REGS, 1),
		 CUDA_ERROR_INVALID_VALUE);
	check(cuFuncSetCacheConfig(function, CU_FUNC_CACHE_PREFER_L1));
	check(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1024));
}

static int
launch(CUfunction function, unsigned int gx, unsigned int gy, unsigned int bx, unsigned int bz,
       unsigned int shared)
{
	CUdeviceptr out = 0;

	return cuLaunchKernel(function, gx, gy, 1, bx, 1, bz, shared, NULL, (void *[]){ &out },
			      NULL);
}

UNIT_TEST(impossible_launches_are_refused_at_once)
{
	CUfunction bounded = gs_test_kernel("bounded"), plain = gs_test_kernel("use_variables");

	assert_int_equal(launch(plain, 0, 1, 1, 1, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(launch(plain, 1, 65536, 1, 1, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(launch(plain, 1, 1, 0, 1, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(launch(plain, 1, 1, 1025, 1, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(launch(plain, 1, 1, 1, 65, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(launch(plain, 1, 1, 1024, 2, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(launch(plain, 1, 1, 1, 1, 50000), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(launch(bounded, 1, 1, 256, 1, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(launch(bounded, 1, 1, 128, 1, 1025), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(launch((CUfunction)state, 1, 1, 1, 1, 0), CUDA_ERROR_INVALID_HANDLE);
	check(cuCtxSynchronize());
}

UNIT_TEST(occupancy_limits_cooperative_launches)
{
	CUfunction function = gs_test_kernel("use_variables");
	CUdeviceptr out;
	void *params[] = { &out };
	int blocks, grid, block, count;
	size_t room;

	check(cuMemAlloc_v2(&out, 4));
	check(cuDeviceGetAttribute(&count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
	check(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, 256, 0));
	assert_in_range(blocks, 1, 8);
	check(cuOccupancyMaxPotentialBlockSize(&grid, &block, function, NULL, 0, 0));
	assert_int_equal(block % 32, 0);
	assert_int_equal(grid % count, 0);
	check(cuOccupancyMaxPotentialBlockSize(&grid, &block, function, NULL, 0, 64));
	assert_int_equal(block, 64);
	check(cuOccupancyAvailableDynamicSMemPerBlock(&room, function, 1, 256));
	assert_int_equal(room, 227 * 1024);
	check_is(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, 0, 0),
		 CUDA_ERROR_INVALID_VALUE);

	check(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, 256, 0));
	check(cuLaunchCooperativeKernel(function, (unsigned int)(blocks * count), 1, 1, 256, 1, 1,
					0, NULL, params));
	check_is(cuLaunchCooperativeKernel(function, (unsigned int)(blocks * count + 1), 1, 1, 256,
					   1, 1, 0, NULL, params),
		 CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
	check(cuCtxSynchronize());
	check(cuMemFree_v2(out));
}

static int
launch_with(CUlaunchAttribute attribute)
{
	CUdeviceptr out;
	int r;
	CUlaunchConfig config = { .gridDimX = 1,
				  .gridDimY = 1,
				  .gridDimZ = 1,
				  .blockDimX = 32,
				  .blockDimY = 1,
				  .blockDimZ = 1,
				  .attrs = &attribute,
				  .numAttrs = 1 };

	check(cuMemAlloc_v2(&out, 4));
	r = cuLaunchKernelEx(&config, gs_test_kernel("use_variables"), (void *[]){ &out }, NULL);
	check(cuCtxSynchronize());
	check(cuMemFree_v2(out));
	return r;
}

UNIT_TEST(launch_attributes_are_hints_or_refused)
{
	check(launch_with((CUlaunchAttribute){ .id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
					       .value.cooperative = 1 }));
	check(launch_with(
		(CUlaunchAttribute){ .id = CU_LAUNCH_ATTRIBUTE_PRIORITY, .value.priority = -1 }));
	check(launch_with((CUlaunchAttribute){ .id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
					       .value.clusterDim = { 1, 1, 1 } }));
	check_is(launch_with((CUlaunchAttribute){ .id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
						  .value.clusterDim = { 2, 1, 1 } }),
		 CUDA_ERROR_NOT_SUPPORTED);
	check_is(launch_with((CUlaunchAttribute){ .id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT }),
		 CUDA_ERROR_NOT_SUPPORTED);
}

UNIT_TEST(kernels_of_a_stream_run_in_order)
{
	CUfunction append = gs_test_kernel("append");
	CUstream stream = gs_test_stream();
	CUdeviceptr list;
	int values[201];

	check(cuMemAlloc_v2(&list, sizeof(values)));
	check(cuMemsetD8Async(list, 0, sizeof(values), stream));
	for (int i = 0; i < 200; i++) {
		check(cuLaunchKernel(append, 1, 1, 1, 1, 1, 1, 0, stream, (void *[]){ &list, &i },
				     NULL));
	}
	check(cuMemcpyDtoHAsync_v2(values, list, sizeof(values), stream));
	assert_int_equal(values[0], 200);
	for (int i = 0; i < 200; i++)
		assert_int_equal(values[1 + i], i);
	check(cuMemFree_v2(list));
	check(cuStreamDestroy_v2(stream));
}

/* Output of a call that waits, on descriptor 1. */
UNIT_TEST(printing_appears_when_somebody_waits)
{
	CUfunction hello = gs_test_kernel("hello");
	CUstream stream = gs_test_stream();
	char text[256] = { 0 };
	int pipe_ends[2], saved = dup(STDOUT_FILENO);
	ssize_t n;

	assert_int_equal(pipe(pipe_ends), 0);
	dup2(pipe_ends[1], STDOUT_FILENO);
	for (int i = 0; i < 3; i++) {
		check(cuLaunchKernel(hello, 1, 1, 1, 1, 1, 1, 0, stream, (void *[]){ &i }, NULL));
	}
	check(cuStreamSynchronize(stream));
	dup2(saved, STDOUT_FILENO);
	close(saved);
	close(pipe_ends[1]);
	n = read(pipe_ends[0], text, sizeof(text) - 1);
	close(pipe_ends[0]);
	assert_true(n > 0);
	assert_string_equal(text, "hello from 0\nhello from 1\nhello from 2\n");
	check(cuStreamDestroy_v2(stream));
}

UNIT_TEST(unloading_returns_the_memory_of_variables)
{
	CUlibrary library;
	size_t before, during, after, total;

	check(cuMemGetInfo_v2(&before, &total));
	check(load("kernels.fatbin", &library));
	check(cuMemGetInfo_v2(&during, &total));
	assert_true(during < before);
	check(cuLibraryUnload(library));
	check(cuMemGetInfo_v2(&after, &total));
	assert_int_equal(after, before);
}

/* Blocks of 1024 threads, each with this size of local memory. */
static CUresult
launch_with_local(unsigned int blocks, size_t bytes)
{
	CUfunction function;
	CUlibrary library;
	CUresult r;
	char text[512];
	CUkernel kernel;

	(void)snprintf(
		text, sizeof(text),
		".version 7.0\n.target sm_70\n.address_size 64\n"
		".visible .entry wide() {\n .local .align 16 .b8 room[%zu];\n .reg .u32 %%r;\n"
		" mov.u32 %%r, 1;\n st.local.u32 [room], %%r;\n ret;\n}\n",
		bytes);
	check(cuLibraryLoadData(&library, text, NULL, NULL, 0, NULL, NULL, 0));
	check(cuLibraryGetKernel(&kernel, library, "wide"));
	check(cuKernelGetFunction(&function, kernel));
	r = cuLaunchKernel(function, blocks, 1, 1, 1024, 1, 1, 0, NULL, NULL, NULL);
	check(cuStreamSynchronize(NULL));
	check(cuLibraryUnload(library));
	return r;
}

UNIT_TEST(local_memory_is_the_devices)
{
	const size_t threads = (size_t)2 * 2048;
	size_t before, after, total;
	CUdeviceptr filled;

	check(cuMemGetInfo_v2(&before, &total));
	/* Such as every context has it. */
	check(launch_with_local(4, 1024));
	check(cuMemGetInfo_v2(&after, &total));
	assert_int_equal(after, before);
	check(launch_with_local(1, 2048));
	check(launch_with_local(1, 1536));
	check(cuMemGetInfo_v2(&after, &total));
	assert_int_equal(before - after, 1024 * 2048);
	/* Of a large grid, those that run at a time. */
	check(launch_with_local(100, 2048));
	check(cuMemGetInfo_v2(&after, &total));
	assert_int_equal(before - after, threads * 2048);
	/* The device has no room for more. */
	check(cuMemAlloc_v2(&filled, after - threads * 1024));
	assert_int_equal(launch_with_local(4, 4096), CUDA_ERROR_OUT_OF_MEMORY);
	check(launch_with_local(4, 2048));
	check(cuMemFree_v2(filled));
	check(launch_with_local(4, 4096));
}

int
main(void)
{
	/* The size of local memory depends on this number. */
	(void)setenv("GPUPOOL_SOFT_MULTIPROCESSORS", "2", 1);
	gs_test_deadline(60);
	return unit_tests_run(gs_test_setup, gs_test_teardown);
}
