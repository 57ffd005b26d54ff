/* SPDX-License-Identifier: Apache-2.0 */
/* Compiled, not run: nvml/nvml.h matches NVIDIA's header. */
#include "nvml/nvml.h"
#include "protocol/device_state.h"

#include <nvml.h>
#include <stddef.h>

#define SAME(a, b) _Static_assert((a) == (b), #a " is " #b)
#define SIZE(ours, theirs) SAME(sizeof(struct ours), sizeof(theirs))
#define MEMBER(ours, a, theirs, b) SAME(offsetof(struct ours, a), offsetof(theirs, b))

SAME(GPN_UNINITIALIZED, NVML_ERROR_UNINITIALIZED);
SAME(GPN_INVALID_ARGUMENT, NVML_ERROR_INVALID_ARGUMENT);
SAME(GPN_NOT_SUPPORTED, NVML_ERROR_NOT_SUPPORTED);
SAME(GPN_NO_PERMISSION, NVML_ERROR_NO_PERMISSION);
SAME(GPN_NOT_FOUND, NVML_ERROR_NOT_FOUND);
SAME(GPN_INSUFFICIENT_SIZE, NVML_ERROR_INSUFFICIENT_SIZE);
SAME(GPN_DRIVER_NOT_LOADED, NVML_ERROR_DRIVER_NOT_LOADED);
SAME(GPN_TIMEOUT, NVML_ERROR_TIMEOUT);
SAME(GPN_LIBRARY_NOT_FOUND, NVML_ERROR_LIBRARY_NOT_FOUND);
SAME(GPN_FUNCTION_NOT_FOUND, NVML_ERROR_FUNCTION_NOT_FOUND);
SAME(GPN_GPU_IS_LOST, NVML_ERROR_GPU_IS_LOST);
SAME(GPN_MEMORY, NVML_ERROR_MEMORY);
SAME(GPN_ARGUMENT_VERSION_MISMATCH, NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
SAME(GPN_UNKNOWN, NVML_ERROR_UNKNOWN);

SAME(GPN_INIT_NO_GPUS, NVML_INIT_FLAG_NO_GPUS);
SAME(GPN_INIT_FLAGS, NVML_INIT_FLAG_NO_GPUS | NVML_INIT_FLAG_NO_ATTACH | NVML_INIT_FLAG_FORCE_INIT);
SAME(GPN_CLOCK_TYPES, NVML_CLOCK_COUNT);
SAME(GPN_CLOCK_NOW, NVML_CLOCK_ID_CURRENT);
SAME(GPN_CLOCK_APPLICATION, NVML_CLOCK_ID_APP_CLOCK_TARGET);
SAME(GPN_CLOCK_DEFAULT, NVML_CLOCK_ID_APP_CLOCK_DEFAULT);
SAME(GPN_CLOCK_BOOST, NVML_CLOCK_ID_CUSTOMER_BOOST_MAX);
SAME(GPN_TOPOLOGY_INTERNAL, NVML_TOPOLOGY_INTERNAL);
SAME(GPN_TOPOLOGY_SYSTEM, NVML_TOPOLOGY_SYSTEM);
SAME(GPN_PEER_OK, NVML_P2P_STATUS_OK);
SAME(GPN_PEER_NOT_SUPPORTED, NVML_P2P_STATUS_NOT_SUPPORTED);
SAME(GPN_LINK_DOWN, NVML_FEATURE_DISABLED);
SAME(GPN_LINK_UP, NVML_FEATURE_ENABLED);
SAME(GPN_LINK_PEERS, NVML_NVLINK_CAP_P2P_SUPPORTED);
SAME(GPN_LINK_TO_SWITCH, NVML_NVLINK_DEVICE_TYPE_SWITCH);
_Static_assert(GP_STATE_LINKS <= NVML_NVLINK_MAX_LINKS, "NVML knows of more links than GPUs have");
SAME(GPN_UUID_TEXT, NVML_UUID_TYPE_ASCII);
SAME(GPN_UUID_BYTES, NVML_UUID_TYPE_BINARY);
SAME(GPN_UUID_TEXT_SIZE, NVML_DEVICE_UUID_ASCII_LEN);
SAME(GPN_VALUE_UINT, NVML_VALUE_TYPE_UNSIGNED_INT);
SAME(GPN_VALUE_ULONGLONG, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG);
SAME(GPN_FIELD_ENERGY, NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION);
SAME(GPN_FIELD_LINK_STATE, NVML_FI_DEV_NVLINK_GET_STATE);
SAME(GPN_FIELD_POWER_AVERAGE, NVML_FI_DEV_POWER_AVERAGE);
SAME(GPN_FIELD_POWER_NOW, NVML_FI_DEV_POWER_INSTANT);
SAME(GPN_FIELD_POWER_MIN, NVML_FI_DEV_POWER_MIN_LIMIT);
SAME(GPN_FIELD_POWER_MAX, NVML_FI_DEV_POWER_MAX_LIMIT);
SAME(GPN_FIELD_POWER_DEFAULT, NVML_FI_DEV_POWER_DEFAULT_LIMIT);
SAME(GPN_FIELD_POWER_LIMIT, NVML_FI_DEV_POWER_CURRENT_LIMIT);

SIZE(gpn_pci, nvmlPciInfo_t);
MEMBER(gpn_pci, domain, nvmlPciInfo_t, domain);
MEMBER(gpn_pci, id, nvmlPciInfo_t, pciDeviceId);
MEMBER(gpn_pci, subsystem, nvmlPciInfo_t, pciSubSystemId);
MEMBER(gpn_pci, bus_id, nvmlPciInfo_t, busId);
SAME(GPN_VERSION(struct gpn_pci_ext, 1), nvmlPciInfoExt_v1);
MEMBER(gpn_pci_ext, sub_class, nvmlPciInfoExt_t, subClass);
MEMBER(gpn_pci_ext, bus_id, nvmlPciInfoExt_t, busId);
SIZE(gpn_utilization, nvmlUtilization_t);
SIZE(gpn_memory, nvmlMemory_t);
MEMBER(gpn_memory, free, nvmlMemory_t, free);
SIZE(gpn_memory, nvmlBAR1Memory_t);
MEMBER(gpn_memory, free, nvmlBAR1Memory_t, bar1Free);
SAME(GPN_VERSION(struct gpn_memory_v2, 2), nvmlMemory_v2);
MEMBER(gpn_memory_v2, reserved, nvmlMemory_v2_t, reserved);
MEMBER(gpn_memory_v2, used, nvmlMemory_v2_t, used);
SIZE(gpn_process_v1, nvmlProcessInfo_v1_t);
MEMBER(gpn_process_v1, memory, nvmlProcessInfo_v1_t, usedGpuMemory);
SIZE(gpn_process, nvmlProcessInfo_v2_t);
SIZE(gpn_process, nvmlProcessInfo_t);
MEMBER(gpn_process, compute_instance, nvmlProcessInfo_t, computeInstanceId);
SIZE(gpn_process_detail, nvmlProcessDetail_v1_t);
MEMBER(gpn_process_detail, protected_memory, nvmlProcessDetail_v1_t, usedGpuCcProtectedMemory);
SAME(GPN_VERSION(struct gpn_process_list, 1), nvmlProcessDetailList_v1);
MEMBER(gpn_process_list, processes, nvmlProcessDetailList_t, procArray);
SIZE(gpn_sample, nvmlProcessUtilizationSample_t);
MEMBER(gpn_sample, time_us, nvmlProcessUtilizationSample_t, timeStamp);
MEMBER(gpn_sample, decoder, nvmlProcessUtilizationSample_t, decUtil);
SIZE(gpn_sample_v1, nvmlProcessUtilizationInfo_v1_t);
MEMBER(gpn_sample_v1, sm, nvmlProcessUtilizationInfo_v1_t, smUtil);
MEMBER(gpn_sample_v1, optical_flow, nvmlProcessUtilizationInfo_v1_t, ofaUtil);
SAME(GPN_VERSION(struct gpn_sample_list, 1), nvmlProcessesUtilizationInfo_v1);
MEMBER(gpn_sample_list, since_us, nvmlProcessesUtilizationInfo_v1_t, lastSeenTimeStamp);
MEMBER(gpn_sample_list, samples, nvmlProcessesUtilizationInfo_v1_t, procUtilArray);
SAME(GPN_VERSION(struct gpn_temperature, 1), nvmlTemperature_v1);
MEMBER(gpn_temperature, celsius, nvmlTemperature_v1_t, temperature);
SAME(GPN_VERSION(struct gpn_uuid, 1), nvmlUUID_v1);
MEMBER(gpn_uuid, value, nvmlUUID_t, value);
SIZE(gpn_field, nvmlFieldValue_t);
MEMBER(gpn_field, result, nvmlFieldValue_t, nvmlReturn);
MEMBER(gpn_field, value, nvmlFieldValue_t, value);
