/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Helpers for physical memory (cuMemCreate) in sample programs that use the runtime and are not
 * linked with the driver.
 *
 * Errors: a failed call prints its line and exits with status 1, unless the helper returns a
 * CUresult.
 * Units: sizes are in bytes.
 */
#pragma once

#include "app.h"

#include <cuda.h>

/* Returns the driver function of this name. */
#define DRIVER(name) reinterpret_cast<decltype(&name)>(app_entry(#name))
/* Call a driver function that must succeed, or (DEXPECT) return the error `expected`. */
#define DCHECK(call) app_driver_check(CUDA_SUCCESS, call, #call, __LINE__)
#define DEXPECT(expected, call) app_driver_check(expected, call, #call, __LINE__)

/* Implements DRIVER(): looks up the function with the runtime. The pointer is valid until the
 * program ends. */
static inline void *
app_entry(const char *name)
{
	cudaDriverEntryPointQueryResult found;
	void *function = nullptr;

	CHECK(cudaGetDriverEntryPointByVersion(name, &function, 13000, cudaEnableDefault, &found));
	REQUIRE(function);
	return function;
}

/* Implements DCHECK() and DEXPECT(). */
static inline void
app_driver_check(CUresult expected, CUresult result, const char *call, int line)
{
	if (result == expected)
		return;
	printf("line %d: %s: %d, expected %d\n", line, call, (int)result, (int)expected);
	fflush(stdout);
	exit(1);
}

/* Returns the properties of pinned memory at a location, by default on device 0. */
static inline CUmemAllocationProp
app_physical_properties(CUmemLocationType where = CU_MEM_LOCATION_TYPE_DEVICE, int id = 0)
{
	CUmemAllocationProp prop = {};

	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.location.type = where;
	prop.location.id = id;
	return prop;
}

/* Returns the minimum granularity of sizes and addresses for these properties. */
static inline size_t
app_physical_granularity(const CUmemAllocationProp &prop)
{
	size_t granularity;

	DCHECK(DRIVER(cuMemGetAllocationGranularity)(&granularity, &prop,
						     CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	return granularity;
}

/* Returns the handle of new physical memory, which the caller frees with cuMemRelease(). */
static inline CUmemGenericAllocationHandle
app_physical_create(const CUmemAllocationProp &prop, size_t size)
{
	CUmemGenericAllocationHandle memory;

	DCHECK(DRIVER(cuMemCreate)(&memory, size, &prop, 0));
	return memory;
}

/* Sets the access of a device or the host to a mapped range. Returns the result of
 * cuMemSetAccess(). */
static inline CUresult
app_physical_allow(CUdeviceptr at, size_t size, CUmemLocationType who, int id,
		   CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
{
	CUmemAccessDesc access = {};

	access.location.type = who;
	access.location.id = id;
	access.flags = flags;
	return DRIVER(cuMemSetAccess)(at, size, &access, 1);
}

/* Reserves an address range, maps the memory there with read and write access for the device, and
 * returns the address. The caller undoes this with app_physical_unmap(). */
static inline CUdeviceptr
app_physical_map(CUmemGenericAllocationHandle memory, size_t size, int device = 0)
{
	CUdeviceptr at;

	DCHECK(DRIVER(cuMemAddressReserve)(&at, size, 0, 0, 0));
	DCHECK(DRIVER(cuMemMap)(at, size, 0, memory, 0));
	DCHECK(app_physical_allow(at, size, CU_MEM_LOCATION_TYPE_DEVICE, device));
	return at;
}

/* Unmaps the range and frees its addresses. */
static inline void
app_physical_unmap(CUdeviceptr at, size_t size)
{
	DCHECK(DRIVER(cuMemUnmap)(at, size));
	DCHECK(DRIVER(cuMemAddressFree)(at, size));
}
