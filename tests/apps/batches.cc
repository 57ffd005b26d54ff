/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batches of copies of boxes between memory and arrays; and queries of arrays, streams, libraries
 * and links with default properties.
 */
#define __CUDA_API_VERSION_INTERNAL
#include "driver_app.h"

#include <cstring>
#include <vector>

static const size_t width = 24, height = 6, depth = 3, count = width * height * depth;

static CUmemcpy3DOperand
of_memory(const void *memory, size_t row, size_t rows)
{
	CUmemcpy3DOperand operand;

	memset(&operand, 0, sizeof(operand));
	operand.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
	operand.op.ptr.ptr = (CUdeviceptr)memory;
	operand.op.ptr.rowLength = row;
	operand.op.ptr.layerHeight = rows;
	return operand;
}

static CUmemcpy3DOperand
of_array(CUarray array, size_t x, size_t y, size_t z)
{
	CUmemcpy3DOperand operand;

	memset(&operand, 0, sizeof(operand));
	operand.type = CU_MEMCPY_OPERAND_TYPE_ARRAY;
	operand.op.array.array = array;
	operand.op.array.offset = { x, y, z };
	return operand;
}

static CUDA_MEMCPY3D_BATCH_OP
make_copy(CUmemcpy3DOperand dst, CUmemcpy3DOperand src, size_t x, size_t y, size_t z)
{
	CUDA_MEMCPY3D_BATCH_OP op;

	memset(&op, 0, sizeof(op));
	op.dst = dst;
	op.src = src;
	op.extent = { x, y, z };
	op.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
	return op;
}

static CUarray
new_array(unsigned int channels)
{
	CUDA_ARRAY3D_DESCRIPTOR shape = { width,    height, depth, CU_AD_FORMAT_UNSIGNED_INT16,
					  channels, 0 };
	CUarray array;

	CHECK(cuArray3DCreate_v2(&array, &shape));
	return array;
}

/* Memory to an array, to another array, and a part of it to device memory and back. */
static void
run_copies(CUstream stream)
{
	std::vector<unsigned short> sent(count), part(8 * 3 * 2), rows(count);
	CUarray one = new_array(1), two = new_array(1);
	unsigned short *device;

	for (size_t i = 0; i < count; i++)
		sent[i] = (unsigned short)(7 * i + 1);
	CHECK(cuMemAlloc_v2((CUdeviceptr *)&device, count * sizeof(*device)));
	CUDA_MEMCPY3D_BATCH_OP first[] = {
		make_copy(of_array(one, 0, 0, 0), of_memory(sent.data(), 0, 0), width, height,
			  depth),
		make_copy(of_array(two, 0, 0, 0), of_array(one, 0, 0, 0), width, height, depth),
		make_copy(of_memory(part.data(), 0, 0), of_array(two, 4, 2, 1), 8, 3, 2),
	};
	CHECK(cuMemcpy3DBatchAsync_v2(3, first, 0, stream));
	CHECK(cuStreamSynchronize(stream));
	for (size_t z = 0; z < 2; z++) {
		for (size_t y = 0; y < 3; y++) {
			for (size_t x = 0; x < 8; x++)
				REQUIRE(part[(z * 3 + y) * 8 + x] ==
					sent[((z + 1) * height + y + 2) * width + x + 4]);
		}
	}
	/* Memory whose rows and slices are longer than the copy's; elements are bytes here. */
	CHECK(cuMemcpyHtoD_v2((CUdeviceptr)device, sent.data(), count * sizeof(sent[0])));
	CUDA_MEMCPY3D_BATCH_OP second[] = {
		make_copy(of_memory(rows.data(), 2 * width, height),
			  of_memory(device, 2 * width, height), 10, 4, depth),
	};
	CHECK(cuMemcpy3DBatchAsync_v2(1, second, 0, stream));
	CHECK(cuStreamSynchronize(stream));
	for (size_t i = 0; i < count; i++)
		REQUIRE(rows[i] == (i % width < 5 && i / width % height < 4 ? sent[i] : 0));
	CHECK(cuMemFree_v2((CUdeviceptr)device));
	CHECK(cuArrayDestroy(one));
	CHECK(cuArrayDestroy(two));
	printf("copies of boxes in batches: right\n");
}

static void
run_refusals(CUstream stream)
{
	std::vector<unsigned short> memory(2 * count);
	CUarray one = new_array(1), two = new_array(2);
	CUmemcpy3DOperand host = of_memory(memory.data(), 0, 0);
	CUDA_MEMCPY3D_BATCH_OP good = make_copy(of_array(one, 0, 0, 0), host, width, height, depth),
			       wrong;
	size_t failed = 5;

	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpy3DBatchAsync_v2(0, &good, 0, stream));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpy3DBatchAsync_v2(1, nullptr, 0, stream));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpy3DBatchAsync_v2(1, &good, 1, stream));
	wrong = good;
	wrong.extent.depth = 0;
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpy3DBatchAsync_v2(1, &wrong, 0, stream));
	wrong = good;
	wrong.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_INVALID;
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpy3DBatchAsync_v2(1, &wrong, 0, stream));
	wrong = make_copy(of_array(one, 0, 0, 0), of_array(two, 0, 0, 0), 1, 1, 1);
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpy3DBatchAsync_v2(1, &wrong, 0, stream));
	wrong = make_copy(of_array(one, 1, 0, 0), host, width, 1, 1);
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpy3DBatchAsync_v2(1, &wrong, 0, stream));
	wrong = make_copy(of_array(one, 0, 0, 0), of_memory(memory.data(), width - 1, 0), width, 1,
			  1);
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpy3DBatchAsync_v2(1, &wrong, 0, stream));
	CHECK(cuMemcpy3DBatchAsync(1, &good, &failed, 0, stream));
	CHECK(cuStreamSynchronize(stream));
	CHECK(cuArrayDestroy(one));
	CHECK(cuArrayDestroy(two));
	printf("batches: what is wrong is refused\n");
}

static void
run_answers(CUdevice device, CUcontext context, CUstream stream)
{
	static const char text[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
				   ".visible .entry nothing()\n{\n\tret;\n}\n";
	CUatomicOperation operations[] = { CU_ATOMIC_OPERATION_INTEGER_ADD,
					   CU_ATOMIC_OPERATION_CAS };
	CUatomicOperation none = CU_ATOMIC_OPERATION_MAX;
	CUDA_ARRAY_SPARSE_PROPERTIES sparse;
	CUarray array = new_array(1), plane;
	unsigned int able[2] = { ~0u, ~0u };
	CUgreenCtx green = (CUgreenCtx)&green;
	CUgraphicsResource no_resource = nullptr;
	CUcontext told = nullptr;
	CUdeviceptr address;
	CUlibrary library;
	size_t size;
	void *function;

	EXPECT(CUDA_ERROR_INVALID_VALUE, cuArrayGetPlane(&plane, array, 0));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuArrayGetSparseProperties(&sparse, array));
	CHECK(cuArrayDestroy(array));
	CHECK(cuStreamGetCtx_v2(stream, &told, &green));
	REQUIRE(told == context && green == nullptr);
	CHECK(cuLibraryLoadData(&library, text, nullptr, nullptr, 0, nullptr, nullptr, 0));
	EXPECT(CUDA_ERROR_NOT_FOUND, cuLibraryGetManaged(&address, &size, library, "nobody"));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuLibraryGetUnifiedFunction(&function, library, "nobody"));
	CHECK(cuLibraryUnload(library));
	CHECK(cuDeviceGetHostAtomicCapabilities(able, operations, 2, device));
	REQUIRE(able[0] != ~0u && able[1] != ~0u);
	EXPECT(CUDA_ERROR_INVALID_VALUE,
	       cuDeviceGetHostAtomicCapabilities(able, operations, 0, device));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuDeviceGetHostAtomicCapabilities(able, &none, 1, device));
	EXPECT(CUDA_ERROR_INVALID_DEVICE,
	       cuDeviceGetHostAtomicCapabilities(able, operations, 2, 4096));
	EXPECT(CUDA_ERROR_INVALID_DEVICE,
	       cuDeviceGetP2PAtomicCapabilities(able, operations, 2, device, device));
	EXPECT(CUDA_ERROR_INVALID_HANDLE, cuGraphicsUnregisterResource(no_resource));
	EXPECT(CUDA_ERROR_INVALID_HANDLE, cuGraphicsMapResources(1, &no_resource, stream));
	EXPECT(CUDA_ERROR_INVALID_HANDLE,
	       cuGraphicsResourceGetMappedPointer_v2(&address, &size, no_resource));
	printf("questions: answered\n");
}

/* A capture continues without them. */
static void
run_captured(CUstream stream)
{
	CUmemcpyAttributes how = {};
	CUDA_MEMCPY3D_BATCH_OP op = {};
	CUstreamCaptureStatus status;
	CUdeviceptr memory, from;
	CUgraphExec exec;
	CUgraph graph;
	size_t bytes = 64, first = 0, nodes;
	char seen[128];

	CHECK(cuMemAlloc_v2(&memory, 128));
	CHECK(cuMemsetD8_v2(memory, 1, 128));
	/* The stream does not wait for the other stream's event. */
	CHECK(cuCtxSynchronize());
	from = memory + 64;
	how.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
	op.src.type = op.dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
	op.src.op.ptr.ptr = from;
	op.dst.op.ptr.ptr = memory;
	op.extent = { bytes, 1, 1 };
	op.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
	CHECK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	CHECK(cuMemsetD8Async(from, 2, bytes, stream));
	EXPECT(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
	       cuMemcpyBatchAsync_v2(&memory, &from, &bytes, 1, &how, &first, 1, stream));
	EXPECT(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuMemcpy3DBatchAsync_v2(1, &op, 0, stream));
	CHECK(cuStreamIsCapturing(stream, &status));
	REQUIRE(status == CU_STREAM_CAPTURE_STATUS_ACTIVE);
	CHECK(cuMemsetD8Async(from + 32, 3, 32, stream));
	CHECK(cuStreamEndCapture(stream, &graph));
	CHECK(cuGraphGetNodes(graph, nullptr, &nodes));
	REQUIRE(nodes == 2);
	CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	CHECK(cuGraphLaunch(exec, stream));
	CHECK(cuMemcpyDtoHAsync_v2(seen, memory, 128, stream));
	CHECK(cuStreamSynchronize(stream));
	REQUIRE(seen[0] == 1 && seen[64] == 2 && seen[127] == 3);
	CHECK(cuGraphExecDestroy(exec));
	CHECK(cuGraphDestroy(graph));
	CHECK(cuMemFree_v2(memory));
	printf("batches in a capture: declined\n");
}

int
main()
{
	CUdevice device;
	CUcontext context;
	CUstream stream;

	CHECK(cuInit(0));
	CHECK(cuDeviceGet(&device, 0));
	CHECK(cuDevicePrimaryCtxRetain(&context, device));
	CHECK(cuCtxSetCurrent(context));
	CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	run_copies(stream);
	run_refusals(stream);
	run_captured(stream);
	run_answers(device, context, stream);
	CHECK(cuStreamDestroy_v2(stream));
	CHECK(cuDevicePrimaryCtxRelease_v2(device));
	printf("batches: ok\n");
	return 0;
}
