/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Types and constants of NVML's API, as far as this library implements it. Layouts and values are
 * NVML's; names are this project's. tests/compat compares them with NVIDIA's header. A `version`
 * member contains GPN_VERSION() of its struct, set by the caller.
 *
 * Ownership: plain values; pointers refer to memory of the application.
 * Units: memory in bytes, utilization in percent; times as their names end (_us: microseconds).
 */
#ifndef GPN_NVML_H
#define GPN_NVML_H

#include <stdint.h>

/* Results of NVML's functions (nvmlReturn_t). */
enum gpn_result {
	GPN_SUCCESS = 0,
	GPN_UNINITIALIZED = 1,
	GPN_INVALID_ARGUMENT = 2,
	GPN_NOT_SUPPORTED = 3,
	GPN_NO_PERMISSION = 4,
	GPN_NOT_FOUND = 6,
	GPN_INSUFFICIENT_SIZE = 7,
	GPN_DRIVER_NOT_LOADED = 9,
	GPN_TIMEOUT = 10,
	GPN_LIBRARY_NOT_FOUND = 12,
	GPN_FUNCTION_NOT_FOUND = 13,
	GPN_GPU_IS_LOST = 15,
	GPN_MEMORY = 20,
	GPN_ARGUMENT_VERSION_MISMATCH = 25,
	GPN_UNKNOWN = 999,
};

/* Value of the `version` member of a struct of NVML's API with this version number. */
#define GPN_VERSION(type, number) ((unsigned int)(sizeof(type) | (unsigned int)(number) << 24))

/* NVML_INIT_FLAG_NO_GPUS, and the set of all flags of nvmlInitWithFlags. */
#define GPN_INIT_NO_GPUS 1u
#define GPN_INIT_FLAGS 7u
/* Size in bytes of "GPU-01234567-89ab-..." with its NUL. */
#define GPN_UUID_TEXT_SIZE 41
/* GPU or compute instance of a process without MIG. */
#define GPN_NO_INSTANCE 0xffffffffu
/* Value of a process's memory that is not known. */
#define GPN_NOT_AVAILABLE UINT64_MAX

/* nvmlClockType_t */
enum gpn_clock {
	GPN_CLOCK_TYPES = 4 /* number of clocks */
};
/* nvmlClockId_t */
enum gpn_clock_id {
	GPN_CLOCK_NOW,
	GPN_CLOCK_APPLICATION,
	GPN_CLOCK_DEFAULT,
	GPN_CLOCK_BOOST
};
/* nvmlGpuTopologyLevel_t */
enum gpn_topology {
	GPN_TOPOLOGY_INTERNAL = 0,
	GPN_TOPOLOGY_SYSTEM = 50
};
/* nvmlGpuP2PStatus_t, and the number of nvmlGpuP2PCapsIndex_t */
enum gpn_peer {
	GPN_PEER_OK = 0,
	GPN_PEER_NOT_SUPPORTED = 5,
	GPN_PEER_CAPABILITIES = 5
};
/* Values of the functions nvmlDeviceGetNvLink... */
enum gpn_link {
	GPN_LINK_DOWN = 0,
	GPN_LINK_UP = 1,
	GPN_LINK_PEERS = 0,    /* capability: peer access */
	GPN_LINK_TO_SWITCH = 2 /* type of the remote device */
};

/* nvmlPciInfo_t; id: device and vendor ID; bus_id: "00000000:3B:00.0" */
struct gpn_pci {
	char short_bus_id[16];
	unsigned int domain, bus, device, id, subsystem;
	char bus_id[32];
};

/* nvmlPciInfoExt_t */
struct gpn_pci_ext {
	unsigned int version, domain, bus, device, id, subsystem, base_class, sub_class;
	char bus_id[32];
};

/* nvmlUtilization_t; in percent */
struct gpn_utilization {
	unsigned int gpu, memory;
};

/* nvmlMemory_t and nvmlBAR1Memory_t */
struct gpn_memory {
	unsigned long long total, free, used;
};

/* nvmlMemory_v2_t */
struct gpn_memory_v2 {
	unsigned int version;
	unsigned long long total, reserved, free, used;
};

/* nvmlProcessInfo_v1_t */
struct gpn_process_v1 {
	unsigned int pid;
	unsigned long long memory;
};

/* nvmlProcessInfo_v2_t; the instances are GPN_NO_INSTANCE without MIG */
struct gpn_process {
	unsigned int pid;
	unsigned long long memory;
	unsigned int gpu_instance, compute_instance;
};

/* nvmlProcessDetail_v1_t */
struct gpn_process_detail {
	unsigned int pid;
	unsigned long long memory;
	unsigned int gpu_instance, compute_instance;
	unsigned long long protected_memory;
};

/* nvmlProcessDetailList_t; count: capacity, then number of processes */
struct gpn_process_list {
	unsigned int version, mode, count;
	struct gpn_process_detail *processes;
};

/* nvmlProcessUtilizationSample_t: percentage of the time that a process's kernels ran (sm); the
 * other values are unknown and 0. */
struct gpn_sample {
	unsigned int pid;
	unsigned long long time_us;
	unsigned int sm, memory, encoder, decoder;
};

/* nvmlProcessUtilizationInfo_v1_t */
struct gpn_sample_v1 {
	unsigned long long time_us;
	unsigned int pid, sm, memory, encoder, decoder, jpeg, optical_flow;
};

/* nvmlProcessesUtilizationInfo_v1_t */
struct gpn_sample_list {
	unsigned int version, count;
	unsigned long long since_us;
	struct gpn_sample_v1 *samples;
};

/* nvmlTemperature_v1_t */
struct gpn_temperature {
	unsigned int version;
	int sensor, celsius;
};

/* nvmlUUIDType_t */
enum gpn_uuid_type {
	GPN_UUID_TEXT = 1,
	GPN_UUID_BYTES = 2
};
/* nvmlUUID_t */
struct gpn_uuid {
	unsigned int version, type;
	union {
		char text[GPN_UUID_TEXT_SIZE];
		unsigned char bytes[16];
	} value;
};

/* nvmlValueType_t */
enum gpn_value_type {
	GPN_VALUE_UINT = 1,
	GPN_VALUE_ULONGLONG = 3
};
/* nvmlFieldValue_t; id: enum gpn_field_id; type: enum gpn_value_type; result: enum gpn_result */
struct gpn_field {
	unsigned int id, scope;
	long long time_us, latency_us;
	int type, result;
	union {
		unsigned int u;
		unsigned long long ull;
	} value;
};
/* Fields that nvmlDeviceGetFieldValues supports. */
enum gpn_field_id {
	GPN_FIELD_ENERGY = 83,
	GPN_FIELD_LINK_STATE = 165,
	GPN_FIELD_POWER_AVERAGE = 185,
	GPN_FIELD_POWER_NOW = 186,
	GPN_FIELD_POWER_MIN = 187,
	GPN_FIELD_POWER_MAX = 188,
	GPN_FIELD_POWER_DEFAULT = 189,
	GPN_FIELD_POWER_LIMIT = 190,
};

#endif /* GPN_NVML_H */
