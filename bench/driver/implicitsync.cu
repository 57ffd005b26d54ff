/* SPDX-License-Identifier: Apache-2.0 */
/*
 * implicitsync: which calls of the driver and of the runtime wait for a running kernel.
 *
 *   implicitsync [NAME]       calls whose name contains NAME
 *
 * Each call is made while a kernel of 100 ms runs (a) in a non-blocking stream, (b) in the legacy
 * default stream, (c) in a blocking stream. The kernel's last action sets a word of mapped memory.
 * A line has, for each stream: "waits" if the word is set when the call returns, the duration of
 * the call in ms, and cuStreamQuery() of that stream right after it (ready or busy).
 */
#include "measure.h"

#include <cstring>
#include <cuda.h>
#include <cuda_runtime.h>
#include <functional>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define KERNEL_MS 100

static const char image[] = ".version 6.4\n.target sm_70\n.address_size 64\n"
			    ".global .u32 number[1024];\n"
			    ".visible .entry nothing() { ret; }\n";

static __device__ int symbol[4096];

static __device__ unsigned long long
gpu_time()
{
	unsigned long long now;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
	return now;
}

static __global__ void
run_long(int ms, volatile int *flag)
{
	unsigned long long begin = gpu_time();

	while (gpu_time() - begin < ms * 1000000ull)
		__nanosleep(2000);
	__threadfence_system();
	*flag = 1;
	__threadfence_system();
}

static __global__ void
empty()
{
}

struct probe {
	CUstream streams[3];
	CUcontext context, second;
	CUdevice device;
	int *flag;
	char *device_memory, *other_memory, *pinned, *mapped, *managed, *plain, *registered;
	cudaArray_t array;
};

/* The stream of the kernel, and objects created by a call's preparation. */
struct slot {
	CUstream busy;
	void *pointer;
	CUdeviceptr address;
	CUmemGenericAllocationHandle physical;
	CUmodule module;
	CUlibrary library;
	CUstream stream;
	CUevent event;
	CUgraph graph;
	CUgraphExec exec;
	CUmemoryPool pool;
	CUcontext context;
	cudaArray_t array;
	cudaTextureObject_t texture;
};

typedef std::function<int(slot &)> action;

struct call {
	std::string name;
	action prepare, act, finish;
	action in_flight; /* queued after the kernel, before the call */
};

static probe p;
static std::vector<call> calls;
/* Pipes to a child process that exports memory. */
static int ipc_request[2], ipc_reply[2];

static void
add(const std::string &name, action prepare, action act, action finish = nullptr,
    action in_flight = nullptr)
{
	calls.push_back({ name, prepare, act, finish, in_flight });
}

static std::string
size_text(size_t size)
{
	if (size >= MIB)
		return std::to_string(size / MIB) + " MiB" + (size % MIB ? "+4" : "");
	if (size >= KIB)
		return std::to_string(size / KIB) + " KiB" + (size % KIB ? "+4" : "");
	return std::to_string(size) + " B";
}

static void
add_copies()
{
	const size_t sizes[] = { 4, 4 * KIB, 64 * KIB, 64 * KIB + 4, MIB, 16 * MIB };
	struct {
		const char *name;
		char *memory;
	} host[] = { { "pageable", p.plain },
		     { "pinned", p.pinned },
		     { "mapped", p.mapped },
		     { "registered", p.registered },
		     { "managed", p.managed } };

	for (auto &kind : host) {
		for (size_t size : sizes) {
			char *memory = kind.memory;

			add(std::string("cudaMemcpy to device, ") + kind.name + " " +
				    size_text(size),
			    nullptr, [=](slot &) {
				    return cudaMemcpy(p.device_memory, memory, size,
						      cudaMemcpyDefault);
			    });
		}
	}
	for (auto &kind : host) {
		for (size_t size : sizes) {
			char *memory = kind.memory;

			add(std::string("cudaMemcpy to host, ") + kind.name + " " + size_text(size),
			    nullptr, [=](slot &) {
				    return cudaMemcpy(memory, p.device_memory, size,
						      cudaMemcpyDefault);
			    });
		}
	}
	for (size_t size : sizes) {
		add(
			"cudaMemcpyAsync in an own stream to device, pageable " + size_text(size),
			[](slot &s) { return cuStreamCreate(&s.stream, CU_STREAM_NON_BLOCKING); },
			[=](slot &s) {
				return cudaMemcpyAsync(p.device_memory, p.plain, size,
						       cudaMemcpyDefault, s.stream);
			},
			[](slot &s) { return cuStreamDestroy(s.stream); });
		add("cudaMemcpyAsync in the kernel's stream to device, pageable " + size_text(size),
		    nullptr, [=](slot &s) {
			    return cudaMemcpyAsync(p.device_memory, p.plain, size,
						   cudaMemcpyDefault, s.busy);
		    });
		add("cudaMemcpyAsync in the kernel's stream to device, pinned " + size_text(size),
		    nullptr, [=](slot &s) {
			    return cudaMemcpyAsync(p.device_memory, p.pinned, size,
						   cudaMemcpyDefault, s.busy);
		    });
		add(
			"cudaMemcpyAsync in an own stream to host, pageable " + size_text(size),
			[](slot &s) { return cuStreamCreate(&s.stream, CU_STREAM_NON_BLOCKING); },
			[=](slot &s) {
				return cudaMemcpyAsync(p.plain, p.device_memory, size,
						       cudaMemcpyDefault, s.stream);
			},
			[](slot &s) { return cuStreamDestroy(s.stream); });
	}
	for (size_t size : sizes) {
		add("cudaMemcpy device to device " + size_text(size), nullptr, [=](slot &) {
			return cudaMemcpy(p.device_memory, p.other_memory, size, cudaMemcpyDefault);
		});
		add("cudaMemcpy pageable to pageable " + size_text(size), nullptr, [=](slot &) {
			return cudaMemcpy(p.plain, p.plain + 20 * MIB, size, cudaMemcpyDefault);
		});
		add("cudaMemcpy pinned to pinned " + size_text(size), nullptr, [=](slot &) {
			return cudaMemcpy(p.pinned, p.pinned + 20 * MIB, size, cudaMemcpyDefault);
		});
		add("cudaMemcpyPeer, one device " + size_text(size), nullptr, [=](slot &) {
			return cudaMemcpyPeer(p.device_memory, 0, p.other_memory, 0, size);
		});
	}
	for (size_t size : { (size_t)4, 4 * KIB }) {
		add("cudaMemcpyToSymbol, pageable " + size_text(size), nullptr,
		    [=](slot &) { return cudaMemcpyToSymbol(symbol, p.plain, size); });
		add("cudaMemcpyFromSymbol, pageable " + size_text(size), nullptr,
		    [=](slot &) { return cudaMemcpyFromSymbol(p.plain, symbol, size); });
	}
	add("cudaMemcpy2D to device, pageable", nullptr, [](slot &) {
		return cudaMemcpy2D(p.device_memory, 256, p.plain, 128, 100, 10, cudaMemcpyDefault);
	});
	add("cudaMemcpy2D to device, pageable 1 MiB", nullptr, [](slot &) {
		return cudaMemcpy2D(p.device_memory, 2048, p.plain, 1024, 1024, 1024,
				    cudaMemcpyDefault);
	});
	add("cudaMemcpy2D to device, pinned", nullptr, [](slot &) {
		return cudaMemcpy2D(p.device_memory, 256, p.pinned, 128, 100, 10,
				    cudaMemcpyDefault);
	});
	add("cudaMemcpy2D to host, pageable", nullptr, [](slot &) {
		return cudaMemcpy2D(p.plain, 256, p.device_memory, 128, 100, 10, cudaMemcpyDefault);
	});
	add("cudaMemcpy2D device to device", nullptr, [](slot &) {
		return cudaMemcpy2D(p.device_memory, 256, p.other_memory, 128, 100, 10,
				    cudaMemcpyDefault);
	});
	add("cudaMemcpy2DToArray, pageable 4 KiB", nullptr, [](slot &) {
		return cudaMemcpy2DToArray(p.array, 0, 0, p.plain, 64, 64, 64,
					   cudaMemcpyHostToDevice);
	});
	add("cudaMemcpy2DToArray, pageable 1 MiB", nullptr, [](slot &) {
		return cudaMemcpy2DToArray(p.array, 0, 0, p.plain, 1024, 1024, 1024,
					   cudaMemcpyHostToDevice);
	});
	add("cudaMemcpy2DFromArray, pageable 4 KiB", nullptr, [](slot &) {
		return cudaMemcpy2DFromArray(p.plain, 64, p.array, 0, 0, 64, 64,
					     cudaMemcpyDeviceToHost);
	});
	struct {
		const char *name;
		char *memory;
	} to[] = { { "device", p.device_memory },
		   { "pinned", p.pinned },
		   { "mapped", p.mapped },
		   { "registered", p.registered },
		   { "managed", p.managed } };
	for (auto &kind : to) {
		char *memory = kind.memory;

		for (size_t size : { 4 * KIB, MIB })
			add(std::string("cudaMemset of ") + kind.name + " memory " +
				    size_text(size),
			    nullptr, [=](slot &) { return cudaMemset(memory, 1, size); });
		add(std::string("cudaMemset2D of ") + kind.name + " memory", nullptr,
		    [=](slot &) { return cudaMemset2D(memory, 256, 1, 100, 10); });
		add(
			std::string("cudaMemsetAsync in an own stream of ") + kind.name + " memory",
			[](slot &s) { return cuStreamCreate(&s.stream, CU_STREAM_NON_BLOCKING); },
			[=](slot &s) { return cudaMemsetAsync(memory, 1, 4 * KIB, s.stream); },
			[](slot &s) { return cuStreamDestroy(s.stream); });
	}
}

static int
free_address(slot &s)
{
	return cuMemFree(s.address);
}

static int
free_pointer(slot &s)
{
	return cuMemFreeHost(s.pointer);
}

static int
destroy_pool(slot &s)
{
	return cuMemPoolDestroy(s.pool);
}

static int
make_pool(slot &s)
{
	CUmemPoolProps props = {};

	props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
	props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	props.location.id = p.device;
	return cuMemPoolCreate(&s.pool, &props);
}

/* The pool has some memory that was freed and is retained. */
static int
make_used_pool(slot &s)
{
	cuuint64_t most = UINT64_MAX;
	int error = make_pool(s);

	error = error ? error
		      : cuMemPoolSetAttribute(s.pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &most);
	error = error ? error : cuMemAllocFromPoolAsync(&s.address, 8 * MIB, s.pool, p.streams[0]);
	error = error ? error : cuMemFreeAsync(s.address, p.streams[0]);
	return error ? error : cuStreamSynchronize(p.streams[0]);
}

static int
make_pool_block(slot &s)
{
	return cuMemAllocAsync(&s.address, MIB, p.streams[0]);
}

static void
add_memory()
{
	for (size_t size : { 4 * KIB, MIB, 64 * MIB }) {
		add(
			"cuMemAlloc " + size_text(size), nullptr,
			[=](slot &s) { return cuMemAlloc(&s.address, size); }, free_address);
		add(
			"cuMemFree " + size_text(size),
			[=](slot &s) { return cuMemAlloc(&s.address, size); }, free_address);
		add(
			"cuMemHostAlloc " + size_text(size), nullptr,
			[=](slot &s) { return cuMemHostAlloc(&s.pointer, size, 0); }, free_pointer);
		add(
			"cuMemFreeHost " + size_text(size),
			[=](slot &s) { return cuMemHostAlloc(&s.pointer, size, 0); }, free_pointer);
		add(
			"cuMemAllocManaged " + size_text(size), nullptr,
			[=](slot &s) {
				return cuMemAllocManaged(&s.address, size, CU_MEM_ATTACH_GLOBAL);
			},
			free_address);
		add(
			"cuMemFree of managed memory " + size_text(size),
			[=](slot &s) {
				return cuMemAllocManaged(&s.address, size, CU_MEM_ATTACH_GLOBAL);
			},
			free_address);
		add(
			"cuMemHostRegister " + size_text(size),
			[=](slot &s) {
				s.pointer = aligned_alloc(4096, size);
				return s.pointer ? 0 : 2;
			},
			[=](slot &s) { return cuMemHostRegister(s.pointer, size, 0); },
			[](slot &s) {
				int error = cuMemHostUnregister(s.pointer);

				free(s.pointer);
				return error;
			});
		add(
			"cuMemHostUnregister " + size_text(size),
			[=](slot &s) {
				s.pointer = aligned_alloc(4096, size);
				return cuMemHostRegister(s.pointer, size, 0);
			},
			[](slot &s) { return cuMemHostUnregister(s.pointer); },
			[](slot &s) {
				free(s.pointer);
				return 0;
			});
	}
	add("cudaFree(NULL)", nullptr, [](slot &) { return cudaFree(nullptr); });
	add("cudaFreeHost(NULL)", nullptr, [](slot &) { return cudaFreeHost(nullptr); });
	add(
		"cudaFree of memory in use by the kernel's stream",
		[](slot &s) { return cuMemAlloc(&s.address, MIB); }, free_address, nullptr,
		[](slot &s) { return cuMemsetD8Async(s.address, 1, MIB, s.busy); });
	add(
		"cudaMallocArray", nullptr,
		[](slot &s) {
			cudaChannelFormatDesc desc = cudaCreateChannelDesc<char>();
			return cudaMallocArray(&s.array, &desc, 1024, 1024);
		},
		[](slot &s) { return cudaFreeArray(s.array); });
	add(
		"cudaFreeArray",
		[](slot &s) {
			cudaChannelFormatDesc desc = cudaCreateChannelDesc<char>();
			return cudaMallocArray(&s.array, &desc, 1024, 1024);
		},
		[](slot &s) { return cudaFreeArray(s.array); });
	auto make_texture = [](slot &s) {
		cudaResourceDesc resource = {};
		cudaTextureDesc desc = {};

		resource.resType = cudaResourceTypeArray;
		resource.res.array.array = p.array;
		return cudaCreateTextureObject(&s.texture, &resource, &desc, nullptr);
	};
	auto destroy_texture = [](slot &s) { return cudaDestroyTextureObject(s.texture); };
	add("cudaCreateTextureObject", nullptr, make_texture, destroy_texture);
	add("cudaDestroyTextureObject", make_texture, destroy_texture);
	add("cudaFree of a block of cudaMallocAsync", make_pool_block, free_address);
	add(
		"cudaFreeAsync in an own stream", make_pool_block,
		[](slot &s) { return cuMemFreeAsync(s.address, s.stream); }, nullptr);
	calls.back().prepare = [](slot &s) {
		int error = make_pool_block(s);
		return error ? error : (int)cuStreamCreate(&s.stream, CU_STREAM_NON_BLOCKING);
	};
	calls.back().finish = [](slot &s) { return cuStreamDestroy(s.stream); };
	add("cuMemPoolCreate", nullptr, make_pool, destroy_pool);
	add(
		"cuMemPoolTrimTo 0, nothing kept", make_pool,
		[](slot &s) { return cuMemPoolTrimTo(s.pool, 0); }, destroy_pool);
	add(
		"cuMemPoolTrimTo 0, 8 MiB kept", make_used_pool,
		[](slot &s) { return cuMemPoolTrimTo(s.pool, 0); }, destroy_pool);
	add(
		"cuMemPoolTrimTo 0, 8 MiB kept, a free in flight", make_used_pool,
		[](slot &s) { return cuMemPoolTrimTo(s.pool, 0); }, destroy_pool,
		[](slot &s) {
			int error = cuMemAllocFromPoolAsync(&s.address, 8 * MIB, s.pool, s.busy);
			return error ? error : (int)cuMemFreeAsync(s.address, s.busy);
		});
	add("cuMemPoolDestroy", make_pool, destroy_pool);
	add("cuMemPoolDestroy, 8 MiB kept", make_used_pool, destroy_pool);
	add("cuMemPoolDestroy, a free in flight", make_used_pool, destroy_pool, nullptr,
	    [](slot &s) {
		    int error = cuMemAllocFromPoolAsync(&s.address, 8 * MIB, s.pool, s.busy);
		    return error ? error : (int)cuMemFreeAsync(s.address, s.busy);
	    });
	add("cuDeviceGraphMemTrim", nullptr, [](slot &) { return cuDeviceGraphMemTrim(p.device); });
}

static CUmemAllocationProp
physical_prop()
{
	CUmemAllocationProp prop = {};

	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	prop.location.id = p.device;
	return prop;
}

static int
make_mapping(slot &s, int steps)
{
	CUmemAllocationProp prop = physical_prop();
	CUmemAccessDesc access = {};
	int error = 0;

	access.location = prop.location;
	access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	if (steps > 0)
		error = cuMemCreate(&s.physical, 2 * MIB, &prop, 0);
	if (!error && steps > 1)
		error = cuMemAddressReserve(&s.address, 2 * MIB, 0, 0, 0);
	if (!error && steps > 2)
		error = cuMemMap(s.address, 2 * MIB, 0, s.physical, 0);
	if (!error && steps > 3)
		error = cuMemSetAccess(s.address, 2 * MIB, &access, 1);
	return error;
}

static int
drop_mapping(slot &s, int steps)
{
	int error = 0;

	if (steps > 2)
		error = cuMemUnmap(s.address, 2 * MIB);
	if (!error && steps > 1)
		error = cuMemAddressFree(s.address, 2 * MIB);
	if (!error && steps > 0)
		error = cuMemRelease(s.physical);
	return error;
}

static void
add_virtual()
{
	auto make = [](int steps) { return [=](slot &s) { return make_mapping(s, steps); }; };
	auto drop = [](int steps) { return [=](slot &s) { return drop_mapping(s, steps); }; };

	add("cuMemCreate", nullptr, make(1), drop(1));
	add(
		"cuMemAddressReserve", make(1),
		[](slot &s) { return cuMemAddressReserve(&s.address, 2 * MIB, 0, 0, 0); }, drop(2));
	add(
		"cuMemMap", make(2),
		[](slot &s) { return cuMemMap(s.address, 2 * MIB, 0, s.physical, 0); }, drop(3));
	add(
		"cuMemSetAccess", make(3),
		[](slot &s) {
			CUmemAccessDesc access = {};

			access.location = physical_prop().location;
			access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
			return cuMemSetAccess(s.address, 2 * MIB, &access, 1);
		},
		drop(4));
	add(
		"cuMemUnmap", make(4), [](slot &s) { return cuMemUnmap(s.address, 2 * MIB); },
		drop(2));
	add(
		"cuMemUnmap, no access", make(3),
		[](slot &s) { return cuMemUnmap(s.address, 2 * MIB); }, drop(2));
	add(
		"cuMemAddressFree", make(2),
		[](slot &s) { return cuMemAddressFree(s.address, 2 * MIB); }, drop(1));
	add("cuMemRelease", make(1), drop(1));
	add(
		"cuMemRelease, mapped", make(4), [](slot &s) { return cuMemRelease(s.physical); },
		[](slot &s) {
			int error = cuMemUnmap(s.address, 2 * MIB);
			return error ? error : (int)cuMemAddressFree(s.address, 2 * MIB);
		});
}

static int
load_module(slot &s)
{
	return cuModuleLoadData(&s.module, image);
}

static int
unload_module(slot &s)
{
	return cuModuleUnload(s.module);
}

static int
load_library(slot &s)
{
	return cuLibraryLoadData(&s.library, image, nullptr, nullptr, 0, nullptr, nullptr, 0);
}

static int
load_library_whole(slot &s)
{
	CUkernel kernel;
	CUfunction function;
	int error = load_library(s);

	error = error ? error : (int)cuLibraryGetKernel(&kernel, s.library, "nothing");
	return error ? error : (int)cuKernelGetFunction(&function, kernel);
}

static int
unload_library(slot &s)
{
	return cuLibraryUnload(s.library);
}

static int
make_exec(slot &s)
{
	cudaGraph_t graph;
	cudaStream_t stream = p.streams[0];
	int error = cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed);

	empty<<<1, 1, 0, stream>>>();
	error = error ? error : (int)cudaStreamEndCapture(stream, &graph);
	s.graph = graph;
	return error ? error : (int)cuGraphInstantiate(&s.exec, s.graph, 0);
}

static int
drop_exec(slot &s)
{
	int error = s.exec ? cuGraphExecDestroy(s.exec) : 0;

	return error ? error : s.graph ? (int)cuGraphDestroy(s.graph) : 0;
}

static void
add_objects()
{
	auto launch_exec = [](slot &s) { return (int)cuGraphLaunch(s.exec, s.busy); };
	auto make_stream = [](slot &s) {
		return (int)cuStreamCreate(&s.stream, CU_STREAM_NON_BLOCKING);
	};
	auto drop_stream = [](slot &s) { return (int)cuStreamDestroy(s.stream); };
	auto make_event = [](slot &s) { return (int)cuEventCreate(&s.event, 0); };
	auto drop_event = [](slot &s) { return (int)cuEventDestroy(s.event); };

	add("cuModuleLoadData", nullptr, load_module, unload_module);
	add("cuModuleUnload", load_module, unload_module);
	add("cuLibraryLoadData", nullptr, load_library, unload_library);
	add("cuLibraryUnload, nothing loaded", load_library, unload_library);
	add("cuLibraryUnload, a loaded kernel", load_library_whole, unload_library);
	add("cuStreamCreate", nullptr, make_stream, drop_stream);
	add("cuStreamDestroy, idle stream", make_stream, drop_stream);
	add("cuStreamDestroy, a copy after the kernel", make_stream, drop_stream, nullptr,
	    [](slot &s) {
		    CUevent event;
		    int error = cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);

		    error = error ? error : (int)cuEventRecord(event, s.busy);
		    error = error ? error : (int)cuStreamWaitEvent(s.stream, event, 0);
		    error = error ? error
				  : (int)cudaMemcpyAsync(p.pinned, p.device_memory, MIB,
							 cudaMemcpyDefault, s.stream);
		    return error ? error : (int)cuEventDestroy(event);
	    });
	add("cuEventCreate", nullptr, make_event, drop_event);
	add("cuEventDestroy, idle event", make_event, drop_event);
	add("cuEventDestroy, recorded after the kernel", make_event, drop_event, nullptr,
	    [](slot &s) { return cuEventRecord(s.event, s.busy); });
	add("cuGraphInstantiate", nullptr, make_exec, drop_exec);
	add(
		"cuGraphExecDestroy, not launched", make_exec,
		[](slot &s) {
			CUgraphExec exec = s.exec;

			s.exec = nullptr;
			return cuGraphExecDestroy(exec);
		},
		drop_exec);
	add(
		"cuGraphExecDestroy, launched after the kernel", make_exec,
		[](slot &s) {
			CUgraphExec exec = s.exec;

			s.exec = nullptr;
			return cuGraphExecDestroy(exec);
		},
		drop_exec, launch_exec);
	add(
		"cuGraphDestroy", make_exec,
		[](slot &s) {
			CUgraph graph = s.graph;

			s.graph = nullptr;
			return cuGraphDestroy(graph);
		},
		drop_exec);
	add(
		"cuGraphUpload in an own stream", make_exec,
		[](slot &s) { return cuGraphUpload(s.exec, s.stream); }, drop_exec);
	calls.back().prepare = [=](slot &s) {
		int error = make_exec(s);
		return error ? error : make_stream(s);
	};
	calls.back().finish = [=](slot &s) {
		int error = drop_exec(s);
		return error ? error : drop_stream(s);
	};
}

static void
add_contexts()
{
	auto make_context = [](slot &s) {
		int error = cuCtxCreate(&s.context, nullptr, 0, p.device);

		cuCtxSetCurrent(p.context);
		return error;
	};
	auto drop_context = [](slot &s) {
		int error = cuCtxDestroy(s.context);

		cuCtxSetCurrent(p.context);
		return error;
	};

	add("cuMemGetInfo", nullptr, [](slot &) {
		size_t free, total;
		return cuMemGetInfo(&free, &total);
	});
	add("cuCtxSetLimit of the stack", nullptr, [](slot &) {
		size_t size;
		int error = cuCtxGetLimit(&size, CU_LIMIT_STACK_SIZE);
		return error ? error : (int)cuCtxSetLimit(CU_LIMIT_STACK_SIZE, size + 1024);
	});
	add("cuCtxSetLimit of printf", nullptr, [](slot &) {
		size_t size;
		int error = cuCtxGetLimit(&size, CU_LIMIT_PRINTF_FIFO_SIZE);
		return error ? error : (int)cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, size + 4096);
	});
	add(
		"cuPointerSetAttribute SYNC_MEMOPS", nullptr,
		[](slot &) {
			unsigned int one = 1;
			return cuPointerSetAttribute(&one, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS,
						     (CUdeviceptr)p.other_memory);
		},
		[](slot &) {
			unsigned int none = 0;
			return cuPointerSetAttribute(&none, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS,
						     (CUdeviceptr)p.other_memory);
		});
	add("cudaMemAdvise of managed memory", nullptr, [](slot &) {
		return cudaMemAdvise(p.managed, MIB, cudaMemAdviseSetReadMostly,
				     cudaMemLocation{ cudaMemLocationTypeDevice, 0 });
	});
	add("cuStreamAttachMemAsync", nullptr, [](slot &) {
		return cuStreamAttachMemAsync(nullptr, (CUdeviceptr)p.managed, 0,
					      CU_MEM_ATTACH_GLOBAL);
	});
	add("cuFuncGetAttribute", nullptr, [](slot &) {
		cudaFuncAttributes attributes;
		return cudaFuncGetAttributes(&attributes, (const void *)empty);
	});
	add("cuCtxCreate", nullptr, make_context, drop_context);
	add("cuCtxDestroy of another, idle context", make_context, drop_context);
	add(
		"cuMemFree in another context", nullptr,
		[](slot &s) {
			int error = cuMemFree(s.address);
			return error;
		},
		[](slot &) { return cuCtxSetCurrent(p.context); });
	calls.back().prepare = [](slot &s) {
		int error = cuCtxSetCurrent(p.second);
		return error ? error : (int)cuMemAlloc(&s.address, MIB);
	};
	add("cuMemFree of memory of another context", nullptr, free_address);
	calls.back().prepare = [](slot &s) {
		int error = cuCtxSetCurrent(p.second);

		error = error ? error : (int)cuMemAlloc(&s.address, MIB);
		return error ? error : (int)cuCtxSetCurrent(p.context);
	};
	add(
		"cuCtxSynchronize in another context",
		[](slot &) { return cuCtxSetCurrent(p.second); },
		[](slot &) { return cuCtxSynchronize(); },
		[](slot &) { return cuCtxSetCurrent(p.context); });
	add("cuCtxSynchronize", nullptr, [](slot &) { return cuCtxSynchronize(); });
	add("cuStreamQuery", nullptr, [](slot &s) {
		(void)cuStreamQuery(s.busy);
		return 0;
	});
}

static CUipcMemHandle
ipc_handle()
{
	CUipcMemHandle handle;

	if (write(ipc_request[1], "h", 1) != 1 ||
	    read(ipc_reply[0], &handle, sizeof(handle)) != (ssize_t)sizeof(handle)) {
		fprintf(stderr, "implicitsync: the exporter has ended\n");
		exit(1);
	}
	return handle;
}

/* Runs in a process of its own, started before CUDA is initialized: exports a block for each byte
 * that it reads. */
static void
serve_ipc()
{
	char byte;

	while (read(ipc_request[0], &byte, 1) == 1) {
		CUipcMemHandle handle;
		CUdeviceptr block;

		CHECK(cudaFree(nullptr));
		CHECK(cuMemAlloc(&block, 2 * MIB));
		CHECK(cuIpcGetMemHandle(&handle, block));
		if (write(ipc_reply[1], &handle, sizeof(handle)) != (ssize_t)sizeof(handle))
			break;
	}
	_exit(0);
}

static void
add_ipc()
{
	auto open = [](slot &s) {
		return cuIpcOpenMemHandle(&s.address, ipc_handle(),
					  CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
	};

	add("cuIpcOpenMemHandle", nullptr, open,
	    [](slot &s) { return cuIpcCloseMemHandle(s.address); });
	add("cuIpcCloseMemHandle", open, [](slot &s) { return cuIpcCloseMemHandle(s.address); });
	add(
		"cuIpcGetMemHandle", [](slot &s) { return cuMemAlloc(&s.address, 2 * MIB); },
		[](slot &s) {
			CUipcMemHandle handle;
			return cuIpcGetMemHandle(&handle, s.address);
		},
		free_address);
	add(
		"cuMemFree of exported memory",
		[](slot &s) {
			CUipcMemHandle handle;
			int error = cuMemAlloc(&s.address, 2 * MIB);
			return error ? error : (int)cuIpcGetMemHandle(&handle, s.address);
		},
		free_address);
}

/* Calls that end the context come last, each in a child process of its own. */
static void
prepare_all()
{
	CHECK(cudaFree(nullptr));
	CHECK(cuCtxGetCurrent(&p.context));
	CHECK(cuCtxGetDevice(&p.device));
	CHECK(cuStreamCreate(&p.streams[0], CU_STREAM_NON_BLOCKING));
	p.streams[1] = nullptr;
	CHECK(cuStreamCreate(&p.streams[2], CU_STREAM_DEFAULT));
	CHECK(cudaHostAlloc((void **)&p.flag, 4096, cudaHostAllocMapped));
	CHECK(cudaMalloc((void **)&p.device_memory, 64 * MIB));
	CHECK(cudaMalloc((void **)&p.other_memory, 64 * MIB));
	CHECK(cudaMallocHost((void **)&p.pinned, 64 * MIB));
	CHECK(cudaHostAlloc((void **)&p.mapped, 64 * MIB, cudaHostAllocMapped));
	CHECK(cudaMallocManaged((void **)&p.managed, 64 * MIB));
	p.plain = (char *)aligned_alloc(4096, 64 * MIB);
	p.registered = (char *)aligned_alloc(4096, 64 * MIB);
	memset(p.plain, 1, 64 * MIB);
	memset(p.registered, 1, 64 * MIB);
	CHECK(cudaHostRegister(p.registered, 64 * MIB, cudaHostRegisterDefault));
	cudaChannelFormatDesc desc = cudaCreateChannelDesc<char>();
	CHECK(cudaMallocArray(&p.array, &desc, 1024, 1024));
	run_long<<<1, 1>>>(0, p.flag);
	empty<<<1, 1>>>();
	CHECK(cudaMemcpyToSymbol(symbol, p.plain, 4));
	CHECK(cudaDeviceSynchronize());
}

static int
run_action(const action &one, slot &s)
{
	return one ? one(s) : 0;
}

/* Makes a call while a kernel runs in that stream; which < 0: without a kernel, so that all code is
 * loaded. */
static void
run_beside(const call &one, int which)
{
	slot s = {};
	int error, waited = 0;
	CUresult query = CUDA_SUCCESS;
	double begin;

	s.busy = which < 0 ? p.streams[0] : p.streams[which];
	*(volatile int *)p.flag = 0;
	error = run_action(one.prepare, s);
	CHECK(cuCtxSynchronize());
	CUcontext current;
	CHECK(cuCtxGetCurrent(&current));
	CHECK(cuCtxSetCurrent(p.context));
	if (which >= 0)
		run_long<<<1, 1, 0, s.busy>>>(KERNEL_MS, p.flag);
	error = error ? error : run_action(one.in_flight, s);
	CHECK(cuCtxSetCurrent(current));
	begin = now_us();
	error = error ? error : one.act(s);
	begin = now_us() - begin;
	if (which >= 0) {
		waited = *(volatile int *)p.flag;
		CHECK(cuCtxSetCurrent(p.context));
		query = cuStreamQuery(s.busy);
		CHECK(cuCtxSetCurrent(current));
	}
	CHECK(cuCtxSetCurrent(p.context));
	CHECK(cuCtxSynchronize());
	CHECK(cuCtxSetCurrent(current));
	int after = one.finish ? one.finish(s) : 0;
	CHECK(cuCtxSetCurrent(p.context));
	CHECK(cuCtxSynchronize());
	(void)cudaGetLastError();
	if (which >= 0 && error)
		printf(" | error %-17d", error);
	else if (which >= 0)
		printf(" | %-5s %8.3f ms %s", waited ? "waits" : "-", begin / 1000,
		       query == CUDA_SUCCESS           ? "ready"
		       : query == CUDA_ERROR_NOT_READY ? "busy "
						       : "error");
	if (which >= 0 && after && !error)
		printf(" (end: error %d)", after);
}

/* For calls that end the context; runs in a child, which has a context of its own. */
static void
run_ending(const char *name, const std::function<int()> &act)
{
	printf("%-62s", name);
	for (int which = 0; which < 3; which++) {
		fflush(stdout);
		pid_t child = fork();

		if (child == 0) {
			double begin;
			int error, waited;

			prepare_all();
			CUevent event;
			CHECK(cuEventCreate(&event, 0));
			*(volatile int *)p.flag = 0;
			run_long<<<1, 1, 0, p.streams[which]>>>(1000, p.flag);
			begin = now_us();
			error = act();
			begin = now_us() - begin;
			/* The word's memory was freed with the context, so only the duration is
			 * available. */
			waited = begin > 900e3;
			if (error)
				printf(" | error %-17d", error);
			else
				printf(" | %-5s %8.3f ms      ", waited ? "waits" : "-",
				       begin / 1000);
			fflush(stdout);
			_exit(0);
		}
		waitpid(child, nullptr, 0);
	}
	printf("\n");
}

int
main(int argc, char **argv)
{
	const char *part = argc > 1 ? argv[1] : "";
	pid_t exporter;

	printf("%-62s | %-26s | %-26s | %s\n",
	       "call, while a kernel of 100 ms runs in a ... stream", "non-blocking",
	       "legacy default", "blocking");
	if (strstr("cudaDeviceReset, a kernel of 1 s", part))
		run_ending("cudaDeviceReset, a kernel of 1 s", [] { return cudaDeviceReset(); });
	if (strstr("cuDevicePrimaryCtxRelease, a kernel of 1 s", part))
		run_ending("cuDevicePrimaryCtxRelease, a kernel of 1 s",
			   [] { return (int)cuDevicePrimaryCtxRelease(0); });
	if (strstr("cuDevicePrimaryCtxReset, a kernel of 1 s", part))
		run_ending("cuDevicePrimaryCtxReset, a kernel of 1 s",
			   [] { return (int)cuDevicePrimaryCtxReset(0); });
	CHECK(pipe(ipc_request));
	CHECK(pipe(ipc_reply));
	fflush(stdout);
	exporter = fork();
	if (exporter == 0) {
		close(ipc_request[1]);
		close(ipc_reply[0]);
		serve_ipc();
	}
	close(ipc_request[0]);
	close(ipc_reply[1]);
	prepare_all();
	CHECK(cuCtxCreate(&p.second, nullptr, 0, p.device));
	CHECK(cuCtxSetCurrent(p.context));
	add_copies();
	add_memory();
	add_virtual();
	add_objects();
	add_contexts();
	add_ipc();
	for (const call &one : calls) {
		if (!strstr(one.name.c_str(), part))
			continue;
		printf("%-62s", one.name.c_str());
		run_beside(one, -1);
		for (int which = 0; which < 3; which++)
			run_beside(one, which);
		printf("\n");
		fflush(stdout);
	}
	close(ipc_request[1]);
	waitpid(exporter, nullptr, 0);
	return 0;
}
