/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texture and surface references of a module: binding, reading, queries, and rejected calls.
 * references [LAUNCHES]: performs LAUNCHES launches without setting references again.
 */
#define CUDA_ENABLE_DEPRECATED
#include "driver_app.h"

#include <cstring>
#include <vector>

static const unsigned int width = 32, height = 8, count = width * height;

static const char text[] = R"(
.version 7.0
.target sm_75
.address_size 64

.global .texref image;
.global .texref line;
.global .surfref plane;
.global .align 4 .u32 number;

.visible .entry sample(.param .u64 out, .param .f32 shift)
{
	.reg .b32 %r<8>;
	.reg .f32 %f<10>;
	.reg .b64 %rd<5>;

	ld.param.u64 %rd1, [out];
	cvta.to.global.u64 %rd2, %rd1;
	ld.param.f32 %f1, [shift];
	mov.u32 %r1, %tid.x;
	mov.u32 %r2, %ctaid.x;
	mov.u32 %r3, %ntid.x;
	mad.lo.u32 %r4, %r2, %r3, %r1;
	cvt.rn.f32.u32 %f2, %r1;
	cvt.rn.f32.u32 %f3, %r2;
	add.f32 %f4, %f2, %f1;
	add.f32 %f5, %f3, 0f3F000000;
	tex.2d.v4.f32.f32 {%f6, %f7, %f8, %f9}, [image, {%f4, %f5}];
	mul.wide.u32 %rd3, %r4, 4;
	add.u64 %rd4, %rd2, %rd3;
	st.global.f32 [%rd4], %f6;
	ret;
}

.visible .entry fetch(.param .u64 out, .param .u32 first)
{
	.reg .b32 %r<12>;
	.reg .b64 %rd<5>;

	ld.param.u64 %rd1, [out];
	cvta.to.global.u64 %rd2, %rd1;
	ld.param.u32 %r1, [first];
	mov.u32 %r2, %tid.x;
	mov.u32 %r3, %ctaid.x;
	mov.u32 %r4, %ntid.x;
	mad.lo.u32 %r5, %r3, %r4, %r2;
	add.u32 %r6, %r5, %r1;
	tex.1d.v4.u32.s32 {%r7, %r8, %r9, %r10}, [line, {%r6}];
	mul.wide.u32 %rd3, %r5, 4;
	add.u64 %rd4, %rd2, %rd3;
	st.global.u32 [%rd4], %r7;
	ret;
}

.visible .entry put(.param .u32 first)
{
	.reg .b32 %r<8>;

	ld.param.u32 %r1, [first];
	mov.u32 %r2, %tid.x;
	mov.u32 %r3, %ctaid.x;
	mov.u32 %r4, %ntid.x;
	mad.lo.u32 %r5, %r3, %r4, %r2;
	add.u32 %r6, %r5, %r1;
	shl.b32 %r7, %r2, 2;
	sust.b.2d.b32.trap [plane, {%r7, %r3}], {%r6};
	ret;
}
)";

static CUmodule module;
static CUdeviceptr out;

static CUfunction
get_function(const char *name)
{
	CUfunction function;

	CHECK(cuModuleGetFunction(&function, module, name));
	return function;
}

static void
launch(const char *name, void **params)
{
	CHECK(cuLaunchKernel(get_function(name), height, 1, 1, width, 1, 1, 0, nullptr, params,
			     nullptr));
}

static std::vector<float>
sampled(float shift)
{
	std::vector<float> values(count);
	void *params[] = { &out, &shift };

	launch("sample", params);
	CHECK(cuMemcpyDtoH(values.data(), out, count * sizeof(float)));
	return values;
}

static std::vector<unsigned int>
fetched(unsigned int first)
{
	std::vector<unsigned int> values(count);
	void *params[] = { &out, &first };

	launch("fetch", params);
	CHECK(cuMemcpyDtoH(values.data(), out, count * sizeof(unsigned int)));
	return values;
}

static CUarray
make_array(const std::vector<float> &values, unsigned int flags)
{
	CUDA_ARRAY3D_DESCRIPTOR shape = { width, height, 0, CU_AD_FORMAT_FLOAT, 1, flags };
	CUDA_MEMCPY2D copy;
	CUarray array;

	CHECK(cuArray3DCreate(&array, &shape));
	memset(&copy, 0, sizeof(copy));
	copy.srcMemoryType = CU_MEMORYTYPE_HOST;
	copy.srcHost = values.data();
	copy.srcPitch = copy.WidthInBytes = width * sizeof(float);
	copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
	copy.dstArray = array;
	copy.Height = height;
	CHECK(cuMemcpy2D(&copy));
	return array;
}

static std::vector<float>
ramp(float first, float step)
{
	std::vector<float> values(count);

	for (unsigned int i = 0; i < count; i++)
		values[i] = first + step * (float)i;
	return values;
}

static void
run_arrays(CUtexref image, int launches)
{
	std::vector<float> one = ramp(0, 1), other = ramp(1000, 2), values;
	CUarray array = make_array(one, 0), second = make_array(other, 0), told;
	CUarray_format format;
	int channels;

	EXPECT(CUDA_ERROR_INVALID_VALUE, cuTexRefGetArray(&told, image));
	CHECK(cuTexRefSetArray(image, array, 0));
	CHECK(cuTexRefSetArray(image, array, CU_TRSA_OVERRIDE_FORMAT));
	CHECK(cuTexRefSetAddressMode(image, 0, CU_TR_ADDRESS_MODE_CLAMP));
	CHECK(cuTexRefSetAddressMode(image, 1, CU_TR_ADDRESS_MODE_CLAMP));
	CHECK(cuTexRefSetFilterMode(image, CU_TR_FILTER_MODE_POINT));
	CHECK(cuTexRefSetFlags(image, 0));
	CHECK(cuTexRefGetArray(&told, image));
	CHECK(cuTexRefGetFormat(&format, &channels, image));
	REQUIRE(told == array && format == CU_AD_FORMAT_FLOAT && channels == 1);
	REQUIRE(sampled(0.5f) == one);
	for (int i = 0; i < launches; i++) {
		float shift = 0.5f;
		void *params[] = { &out, &shift };

		launch("sample", params);
	}
	/* Settings affect later launches only. */
	CHECK(cuTexRefSetArray(image, second, CU_TRSA_OVERRIDE_FORMAT));
	REQUIRE(sampled(0.5f) == other);
	CHECK(cuTexRefSetFilterMode(image, CU_TR_FILTER_MODE_LINEAR));
	values = sampled(1.0f);
	for (unsigned int i = 0; i < count; i++)
		REQUIRE(values[i] == (i % width == width - 1 ? other[i] : other[i] + 1));
	/* Bound to an array that is then destroyed. */
	CHECK(cuTexRefSetArray(image, array, CU_TRSA_OVERRIDE_FORMAT));
	CHECK(cuArrayDestroy(second));
	CHECK(cuTexRefSetFilterMode(image, CU_TR_FILTER_MODE_POINT));
	REQUIRE(sampled(0.5f) == one);
	CHECK(cuArrayDestroy(array));
	printf("a texture reference of arrays: right\n");
}

static void
run_memory(CUtexref image, CUtexref line)
{
	std::vector<float> pitched = ramp(5, 3);
	std::vector<unsigned int> numbers(2 * count), values;
	CUDA_ARRAY_DESCRIPTOR shape = { width, height, CU_AD_FORMAT_FLOAT, 1 };
	CUdeviceptr memory, told;
	size_t offset = 77;

	for (unsigned int i = 0; i < numbers.size(); i++)
		numbers[i] = 3 * i + 1;
	CHECK(cuMemAlloc(&memory, numbers.size() * sizeof(unsigned int)));
	CHECK(cuMemcpyHtoD(memory, numbers.data(), numbers.size() * sizeof(unsigned int)));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuTexRefGetAddress(&told, line));
	CHECK(cuTexRefSetFormat(line, CU_AD_FORMAT_UNSIGNED_INT32, 1));
	CHECK(cuTexRefSetFlags(line, CU_TRSF_READ_AS_INTEGER));
	CHECK(cuTexRefSetAddress(&offset, line, memory, numbers.size() * sizeof(unsigned int)));
	REQUIRE(offset == 0);
	CHECK(cuTexRefGetAddress(&told, line));
	REQUIRE(told == memory);
	values = fetched(10);
	for (unsigned int i = 0; i < count; i++)
		REQUIRE(values[i] == numbers[i + 10]);
	/* Not aligned, so the offset is returned. */
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuTexRefSetAddress(nullptr, line, memory + 16, 64));
	CHECK(cuTexRefSetAddress(&offset, line, memory + 16, 1024 + 64));
	REQUIRE(offset == 16);
	REQUIRE(fetched(4)[0] == numbers[4]);

	CHECK(cuMemcpyHtoD(memory, pitched.data(), count * sizeof(float)));
	CHECK(cuTexRefSetAddress2D(image, &shape, memory, width * sizeof(float)));
	CHECK(cuTexRefGetAddress(&told, image));
	REQUIRE(told == memory && sampled(0.5f) == pitched);
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuTexRefSetAddress2D(image, nullptr, memory, 128));
	CHECK(cuMemFree(memory));
	printf("texture references of memory: right\n");
}

static void
run_surface()
{
	CUarray array = make_array(ramp(0, 0), CUDA_ARRAY3D_SURFACE_LDST), told;
	CUarray plain = make_array(ramp(0, 0), 0);
	std::vector<unsigned int> values(count);
	unsigned int first = 40;
	void *params[] = { &first };
	CUDA_MEMCPY2D copy;
	CUsurfref plane;

	CHECK(cuModuleGetSurfRef(&plane, module, "plane"));
	EXPECT(CUDA_ERROR_NOT_FOUND, cuModuleGetSurfRef(&plane, module, "image"));
	CHECK(cuModuleGetSurfRef(&plane, module, "plane"));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuSurfRefSetArray(plane, plain, 0));
	CHECK(cuSurfRefSetArray(plane, array, 0));
	CHECK(cuSurfRefGetArray(&told, plane));
	REQUIRE(told == array);
	launch("put", params);
	memset(&copy, 0, sizeof(copy));
	copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
	copy.srcArray = array;
	copy.dstMemoryType = CU_MEMORYTYPE_HOST;
	copy.dstHost = values.data();
	copy.dstPitch = copy.WidthInBytes = width * sizeof(unsigned int);
	copy.Height = height;
	CHECK(cuMemcpy2D(&copy));
	for (unsigned int i = 0; i < count; i++)
		REQUIRE(values[i] == first + i);
	CHECK(cuArrayDestroy(array));
	CHECK(cuArrayDestroy(plain));
	printf("a surface reference: right\n");
}

static void
run_settings()
{
	float color[4] = { 1, 2, 3, 4 }, got[4], least, most, bias;
	CUaddress_mode mode;
	CUfilter_mode filter;
	unsigned int flags;
	CUtexref own;
	int value;

	CHECK(cuTexRefCreate(&own));
	CHECK(cuTexRefSetAddressMode(own, 2, CU_TR_ADDRESS_MODE_MIRROR));
	CHECK(cuTexRefGetAddressMode(&mode, own, 2));
	REQUIRE(mode == CU_TR_ADDRESS_MODE_MIRROR);
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuTexRefSetAddressMode(own, 3, mode));
	CHECK(cuTexRefSetFilterMode(own, CU_TR_FILTER_MODE_LINEAR));
	CHECK(cuTexRefGetFilterMode(&filter, own));
	REQUIRE(filter == CU_TR_FILTER_MODE_LINEAR);
	CHECK(cuTexRefSetMipmapFilterMode(own, CU_TR_FILTER_MODE_LINEAR));
	CHECK(cuTexRefGetMipmapFilterMode(&filter, own));
	REQUIRE(filter == CU_TR_FILTER_MODE_LINEAR);
	CHECK(cuTexRefSetMipmapLevelBias(own, 0.25f));
	CHECK(cuTexRefGetMipmapLevelBias(&bias, own));
	CHECK(cuTexRefSetMipmapLevelClamp(own, 1.0f, 2.5f));
	CHECK(cuTexRefGetMipmapLevelClamp(&least, &most, own));
	REQUIRE(bias == 0.25f && least == 1.0f && most == 2.5f);
	CHECK(cuTexRefSetMaxAnisotropy(own, 4));
	CHECK(cuTexRefGetMaxAnisotropy(&value, own));
	REQUIRE(value == 4);
	CHECK(cuTexRefSetBorderColor(own, color));
	CHECK(cuTexRefGetBorderColor(got, own));
	REQUIRE(memcmp(color, got, sizeof(color)) == 0);
	CHECK(cuTexRefSetFlags(own, CU_TRSF_NORMALIZED_COORDINATES));
	CHECK(cuTexRefGetFlags(&flags, own));
	REQUIRE(flags == CU_TRSF_NORMALIZED_COORDINATES);
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuTexRefSetFormat(own, CU_AD_FORMAT_HALF, 3));
	EXPECT(CUDA_ERROR_INVALID_VALUE,
	       cuParamSetTexRef(get_function("sample"), CU_PARAM_TR_DEFAULT, own));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuParamSetTexRef(get_function("sample"), 0, own));
	CHECK(cuTexRefDestroy(own));
	printf("settings: as they were set\n");
}

int
main(int argc, char **argv)
{
	CUdevice device;
	CUcontext context;
	CUtexref image, line, again;

	CHECK(cuInit(0));
	CHECK(cuDeviceGet(&device, 0));
	CHECK(cuDevicePrimaryCtxRetain(&context, device));
	CHECK(cuCtxSetCurrent(context));
	CHECK(cuModuleLoadData(&module, text));
	CHECK(cuMemAlloc(&out, count * sizeof(float)));
	CHECK(cuModuleGetTexRef(&image, module, "image"));
	CHECK(cuModuleGetTexRef(&again, module, "image"));
	REQUIRE(again == image);
	CHECK(cuModuleGetTexRef(&line, module, "line"));
	EXPECT(CUDA_ERROR_NOT_FOUND, cuModuleGetTexRef(&again, module, "number"));
	EXPECT(CUDA_ERROR_NOT_FOUND, cuModuleGetTexRef(&again, module, "nobody"));
	run_arrays(image, argc > 1 ? atoi(argv[1]) : 1);
	run_memory(image, line);
	run_surface();
	run_settings();
	CHECK(cuMemFree(out));
	CHECK(cuModuleUnload(module));
	CHECK(cuDevicePrimaryCtxRelease(device));
	printf("references: ok\n");
	return 0;
}
