/* SPDX-License-Identifier: Apache-2.0 */
#include "softgpu/driver/driver.h"

struct error {
	CUresult code;
	const char *name;
	const char *text;
};

#define ERROR(code, text)                                                                          \
	{                                                                                          \
		code, #code, text                                                                  \
	}

static const struct error errors[] = {
	ERROR(CUDA_SUCCESS, "no error"),
	ERROR(CUDA_ERROR_INVALID_VALUE, "an argument is not valid"),
	ERROR(CUDA_ERROR_OUT_OF_MEMORY, "not enough memory"),
	ERROR(CUDA_ERROR_NOT_INITIALIZED, "cuInit was not called"),
	ERROR(CUDA_ERROR_DEINITIALIZED, "the driver is shutting down"),
	ERROR(CUDA_ERROR_PROFILER_DISABLED, "the profiler is off"),
	ERROR(CUDA_ERROR_PROFILER_NOT_INITIALIZED, "the profiler was not set up"),
	ERROR(CUDA_ERROR_PROFILER_ALREADY_STARTED, "the profiler runs already"),
	ERROR(CUDA_ERROR_PROFILER_ALREADY_STOPPED, "the profiler is stopped already"),
	ERROR(CUDA_ERROR_STUB_LIBRARY, "the library is a stub"),
	ERROR(CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER, "the call needs a newer driver"),
	ERROR(CUDA_ERROR_DEVICE_UNAVAILABLE, "the device is not available"),
	ERROR(CUDA_ERROR_NO_DEVICE, "there is no CUDA device"),
	ERROR(CUDA_ERROR_INVALID_DEVICE, "there is no device of that number"),
	ERROR(CUDA_ERROR_DEVICE_NOT_LICENSED, "the device has no licence"),
	ERROR(CUDA_ERROR_INVALID_IMAGE, "the device code is malformed"),
	ERROR(CUDA_ERROR_INVALID_CONTEXT, "no valid context is current"),
	ERROR(CUDA_ERROR_CONTEXT_ALREADY_CURRENT, "the context is current already"),
	ERROR(CUDA_ERROR_MAP_FAILED, "mapping failed"),
	ERROR(CUDA_ERROR_UNMAP_FAILED, "unmapping failed"),
	ERROR(CUDA_ERROR_ARRAY_IS_MAPPED, "the array is mapped"),
	ERROR(CUDA_ERROR_ALREADY_MAPPED, "mapped already"),
	ERROR(CUDA_ERROR_NO_BINARY_FOR_GPU, "no device code that this device can run"),
	ERROR(CUDA_ERROR_ALREADY_ACQUIRED, "acquired already"),
	ERROR(CUDA_ERROR_NOT_MAPPED, "not mapped"),
	ERROR(CUDA_ERROR_NOT_MAPPED_AS_ARRAY, "not mapped as an array"),
	ERROR(CUDA_ERROR_NOT_MAPPED_AS_POINTER, "not mapped as a pointer"),
	ERROR(CUDA_ERROR_ECC_UNCORRECTABLE, "memory error that could not be corrected"),
	ERROR(CUDA_ERROR_UNSUPPORTED_LIMIT, "the device has no such limit"),
	ERROR(CUDA_ERROR_CONTEXT_ALREADY_IN_USE, "the context is in use"),
	ERROR(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, "no peer access between these devices"),
	ERROR(CUDA_ERROR_INVALID_PTX, "the PTX could not be compiled"),
	ERROR(CUDA_ERROR_INVALID_GRAPHICS_CONTEXT, "not a valid graphics context"),
	ERROR(CUDA_ERROR_NVLINK_UNCORRECTABLE, "NVLink error that could not be corrected"),
	ERROR(CUDA_ERROR_JIT_COMPILER_NOT_FOUND, "the PTX compiler was not found"),
	ERROR(CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "the PTX is of a newer version"),
	ERROR(CUDA_ERROR_JIT_COMPILATION_DISABLED, "compiling PTX is switched off"),
	ERROR(CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY, "no such execution affinity"),
	ERROR(CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC, "kernels cannot wait for kernels"),
	ERROR(CUDA_ERROR_CONTAINED, "a contained memory error"),
	ERROR(CUDA_ERROR_INVALID_SOURCE, "the source is not valid"),
	ERROR(CUDA_ERROR_FILE_NOT_FOUND, "file not found"),
	ERROR(CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND, "symbol of a shared object not found"),
	ERROR(CUDA_ERROR_SHARED_OBJECT_INIT_FAILED, "a shared object could not start"),
	ERROR(CUDA_ERROR_OPERATING_SYSTEM, "a call to the operating system failed"),
	ERROR(CUDA_ERROR_INVALID_HANDLE, "not a valid handle"),
	ERROR(CUDA_ERROR_ILLEGAL_STATE, "not in this state"),
	ERROR(CUDA_ERROR_LOSSY_QUERY, "the answer would lose information"),
	ERROR(CUDA_ERROR_NOT_FOUND, "nothing of that name"),
	ERROR(CUDA_ERROR_NOT_READY, "not ready yet"),
	ERROR(CUDA_ERROR_ILLEGAL_ADDRESS, "a kernel used an illegal address"),
	ERROR(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "the launch asks for too many resources"),
	ERROR(CUDA_ERROR_LAUNCH_TIMEOUT, "a kernel ran for too long"),
	ERROR(CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING, "incompatible texturing mode"),
	ERROR(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, "peer access is on already"),
	ERROR(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, "peer access is not on"),
	ERROR(CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE, "the primary context is active"),
	ERROR(CUDA_ERROR_CONTEXT_IS_DESTROYED, "the context is gone"),
	ERROR(CUDA_ERROR_ASSERT, "an assertion in a kernel failed"),
	ERROR(CUDA_ERROR_TOO_MANY_PEERS, "too many peers"),
	ERROR(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "the host memory is registered already"),
	ERROR(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "the host memory is not registered"),
	ERROR(CUDA_ERROR_HARDWARE_STACK_ERROR, "a kernel's stack overflowed or broke"),
	ERROR(CUDA_ERROR_ILLEGAL_INSTRUCTION, "a kernel met an illegal instruction"),
	ERROR(CUDA_ERROR_MISALIGNED_ADDRESS, "a kernel used a misaligned address"),
	ERROR(CUDA_ERROR_INVALID_ADDRESS_SPACE, "a kernel used an address of the wrong space"),
	ERROR(CUDA_ERROR_INVALID_PC, "a kernel jumped to nowhere"),
	ERROR(CUDA_ERROR_LAUNCH_FAILED, "a kernel failed"),
	ERROR(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, "too many blocks to be resident together"),
	ERROR(CUDA_ERROR_TENSOR_MEMORY_LEAK, "a kernel kept tensor memory"),
	ERROR(CUDA_ERROR_NOT_PERMITTED, "not permitted"),
	ERROR(CUDA_ERROR_NOT_SUPPORTED, "not supported"),
	ERROR(CUDA_ERROR_SYSTEM_NOT_READY, "the system is not ready"),
	ERROR(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, "the parts of the driver do not match"),
	ERROR(CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE,
	      "forward compatibility needs another device"),
	ERROR(CUDA_ERROR_MPS_CONNECTION_FAILED, "no connection to the MPS daemon"),
	ERROR(CUDA_ERROR_MPS_RPC_FAILURE, "a call to the MPS server failed"),
	ERROR(CUDA_ERROR_MPS_SERVER_NOT_READY, "the MPS server is not ready"),
	ERROR(CUDA_ERROR_MPS_MAX_CLIENTS_REACHED, "the MPS server has no room for a client"),
	ERROR(CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED, "no MPS connection is left"),
	ERROR(CUDA_ERROR_MPS_CLIENT_TERMINATED, "the MPS client was terminated"),
	ERROR(CUDA_ERROR_CDP_NOT_SUPPORTED, "kernels cannot launch kernels here"),
	ERROR(CUDA_ERROR_CDP_VERSION_MISMATCH, "versions of device-side launching differ"),
	ERROR(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "not possible during stream capture"),
	ERROR(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "an error has ended the stream capture"),
	ERROR(CUDA_ERROR_STREAM_CAPTURE_MERGE, "two captures would merge"),
	ERROR(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, "the capture did not begin on this stream"),
	ERROR(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "a forked stream was not joined"),
	ERROR(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, "the capture would depend on work outside"),
	ERROR(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, "the capture would depend on the default stream"),
	ERROR(CUDA_ERROR_CAPTURED_EVENT, "the event belongs to a capture"),
	ERROR(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, "the capture began in another thread"),
	ERROR(CUDA_ERROR_TIMEOUT, "time ran out"),
	ERROR(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, "the graph cannot be updated so"),
	ERROR(CUDA_ERROR_EXTERNAL_DEVICE, "an external device failed"),
	ERROR(CUDA_ERROR_INVALID_CLUSTER_SIZE, "the cluster is too large or misshapen"),
	ERROR(CUDA_ERROR_FUNCTION_NOT_LOADED, "the function is not loaded"),
	ERROR(CUDA_ERROR_INVALID_RESOURCE_TYPE, "not a resource of the right type"),
	ERROR(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION, "the resources do not fit together"),
	ERROR(CUDA_ERROR_KEY_ROTATION, "the key is being changed"),
	ERROR(CUDA_ERROR_UNKNOWN, "unknown error"),
};

static const struct error *
find(CUresult code)
{
	for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++) {
		if (errors[i].code == code)
			return &errors[i];
	}
	return NULL;
}

const char *
gs_error_name(CUresult code)
{
	const struct error *error = find(code);

	return error ? error->name : "an unknown error";
}

CUresult CUDAAPI
cuGetErrorName(CUresult code, const char **name_p)
{
	const struct error *error = find(code);

	if (!name_p)
		return CUDA_ERROR_INVALID_VALUE;
	*name_p = error ? error->name : NULL;
	return error ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI
cuGetErrorString(CUresult code, const char **text_p)
{
	const struct error *error = find(code);

	if (!text_p)
		return CUDA_ERROR_INVALID_VALUE;
	*text_p = error ? error->text : NULL;
	return error ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
