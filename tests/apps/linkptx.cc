/* SPDX-License-Identifier: Apache-2.0 */
/* Two PTX texts that the driver links at run time, loads and runs; and errors of linking. */
#include "driver_app.h"

#include <cstring>
#include <string>
#include <unistd.h>

#define HEAD ".version 7.0\n.target sm_75\n.address_size 64\n"

static const char kernel_text[] = HEAD R"(
.extern .func (.param .b32 result) twice(.param .b32 value);

.visible .entry run(.param .u64 out)
{
	.reg .b32 %r<4>;
	.reg .b64 %rd<3>;
	ld.param.u64 %rd1, [out];
	cvta.to.global.u64 %rd2, %rd1;
	mov.u32 %r1, %tid.x;
	{
	.param .b32 given;
	st.param.b32 [given], %r1;
	.param .b32 back;
	call.uni (back), twice, (given);
	ld.param.b32 %r2, [back];
	}
	mul.wide.u32 %rd1, %r1, 4;
	add.u64 %rd2, %rd2, %rd1;
	st.global.u32 [%rd2], %r2;
	ret;
}
)";

static const char function_text[] = HEAD R"(
.visible .func (.param .b32 result) twice(.param .b32 value)
{
	.reg .b32 %r<3>;
	ld.param.b32 %r1, [value];
	add.u32 %r2, %r1, %r1;
	st.param.b32 [result], %r2;
	ret;
}
)";

static CUresult
add(CUlinkState linker, const char *text, const char *name)
{
	return cuLinkAddData(linker, CU_JIT_INPUT_PTX, (void *)text, strlen(text) + 1, name, 0,
			     nullptr, nullptr);
}

static void
run_image(const void *image, const char *what)
{
	unsigned int values[32] = {};
	CUfunction function;
	CUdeviceptr memory;
	CUmodule module;
	void *params[] = { &memory };

	CHECK(cuModuleLoadData(&module, image));
	CHECK(cuModuleGetFunction(&function, module, "run"));
	CHECK(cuMemAlloc(&memory, sizeof(values)));
	CHECK(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, params, nullptr));
	CHECK(cuMemcpyDtoH(values, memory, sizeof(values)));
	for (unsigned int i = 0; i < 32; i++)
		REQUIRE(values[i] == 2 * i);
	CHECK(cuMemFree(memory));
	CHECK(cuModuleUnload(module));
	printf("%s: right\n", what);
}

static void
link_data()
{
	CUlinkState linker;
	size_t size = 0;
	void *image;

	CHECK(cuLinkCreate(0, nullptr, nullptr, &linker));
	CHECK(add(linker, kernel_text, "kernel"));
	CHECK(add(linker, function_text, "function"));
	CHECK(cuLinkComplete(linker, &image, &size));
	REQUIRE(size > 0);
	run_image(image, "two texts linked");
	CHECK(cuLinkDestroy(linker));
}

static void
link_file()
{
	char path[] = "/tmp/linkptx-XXXXXX";
	int fd = mkstemp(path);
	CUlinkState linker;
	void *image;

	REQUIRE(write(fd, function_text, strlen(function_text)) == (ssize_t)strlen(function_text));
	CHECK(cuLinkCreate(0, nullptr, nullptr, &linker));
	CHECK(add(linker, kernel_text, "kernel"));
	EXPECT(CUDA_ERROR_FILE_NOT_FOUND,
	       cuLinkAddFile(linker, CU_JIT_INPUT_PTX, "/no/such/file", 0, nullptr, nullptr));
	CHECK(cuLinkAddFile(linker, CU_JIT_INPUT_PTX, path, 0, nullptr, nullptr));
	CHECK(cuLinkComplete(linker, &image, nullptr));
	run_image(image, "a text and a file linked");
	CHECK(cuLinkDestroy(linker));
	(void)close(fd);
	(void)unlink(path);
}

static void
explain_errors()
{
	char error[4096], info[4096];
	CUjit_option options[] = { CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
				   CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
				   CU_JIT_OPTIMIZATION_LEVEL };
	void *values[] = { error, (void *)sizeof(error), info, (void *)sizeof(info), (void *)3 };
	CUlinkState linker;
	void *image;

	memset(error, 'x', sizeof(error));
	CHECK(cuLinkCreate(5, options, values, &linker));
	REQUIRE(add(linker, HEAD ".visible .entry run() { nonsense; }", "broken") != CUDA_SUCCESS);
	REQUIRE(memchr(error, 0, sizeof(error)) && strlen(error) > 0);
	REQUIRE(strlen(error) == (size_t)values[1]);
	CHECK(cuLinkDestroy(linker));

	values[1] = (void *)sizeof(error);
	values[3] = (void *)sizeof(info);
	CHECK(cuLinkCreate(5, options, values, &linker));
	CHECK(add(linker, kernel_text, "kernel"));
	REQUIRE(cuLinkComplete(linker, &image, nullptr) != CUDA_SUCCESS);
	REQUIRE(memchr(error, 0, sizeof(error)) && strlen(error) > 0);
	CHECK(cuLinkDestroy(linker));
	printf("errors: explained\n");
}

/* Options whose values are numbers. */
static void
compile_with_options()
{
	static const char text[] = HEAD ".visible .entry run() { ret; }";
	CUjit_option options[] = { CU_JIT_MAX_THREADS_PER_BLOCK, CU_JIT_MIN_CTA_PER_SM,
				   CU_JIT_OVERRIDE_DIRECTIVE_VALUES, CU_JIT_SPLIT_COMPILE,
				   CU_JIT_POSITION_INDEPENDENT_CODE };
	void *values[] = { (void *)128, (void *)2, (void *)1, (void *)2, nullptr };
	CUfunction function;
	CUmodule module;

	CHECK(cuModuleLoadDataEx(&module, text, 5, options, values));
	CHECK(cuModuleGetFunction(&function, module, "run"));
	CHECK(cuLaunchKernel(function, 1, 1, 1, 128, 1, 1, 0, nullptr, nullptr, nullptr));
	CHECK(cuCtxSynchronize());
	CHECK(cuModuleUnload(module));
	printf("options: taken\n");
}

static void
refuse()
{
	CUjit_option none = (CUjit_option)1000;
	CUlinkState linker;
	CUmodule module;
	void *value = nullptr;

	EXPECT(CUDA_ERROR_INVALID_VALUE, cuLinkCreate(0, nullptr, nullptr, nullptr));
	CHECK(cuLinkCreate(0, nullptr, nullptr, &linker));
	EXPECT(CUDA_ERROR_INVALID_VALUE,
	       cuLinkAddData(linker, CU_JIT_INPUT_PTX, nullptr, 1, nullptr, 0, nullptr, nullptr));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuLinkComplete(linker, nullptr, nullptr));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuLinkCreate(1, &none, &value, &linker));
	EXPECT(CUDA_ERROR_INVALID_VALUE,
	       cuModuleLoadDataEx(&module, kernel_text, 1, &none, &value));
	/* It is unloaded with its context. */
	printf("refusals: right\n");
}

int
main()
{
	CUcontext context;
	CUdevice device;

	CHECK(cuInit(0));
	CHECK(cuDeviceGet(&device, 0));
	CHECK(cuDevicePrimaryCtxRetain(&context, device));
	CHECK(cuCtxSetCurrent(context));
	link_data();
	link_file();
	explain_errors();
	compile_with_options();
	refuse();
	CHECK(cuDevicePrimaryCtxRelease(device));
	printf("linkptx: ok\n");
	return 0;
}
