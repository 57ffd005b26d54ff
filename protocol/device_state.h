/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reply of gpDeviceState: properties and sensors of a GPU, as the NVML library on the GPU's machine
 * reports them. The worker queries NVML; the client's NVML library (nvml/) answers the
 * application's calls from the reply.
 *
 * The reply consists of numbers (words of 64 bits, little-endian), texts, and processes. An index
 * identifies each word and each text. The indices are part of the wire protocol: further ones may
 * be added, and none is used again. The lists below name the NVML function whose result a word or
 * text contains.
 *
 * Ownership: plain values.
 * Threads: any; pure functions.
 * Units: as the NVML function of a word returns it, unless noted.
 */
#ifndef GP_PROTOCOL_DEVICE_STATE_H
#define GP_PROTOCOL_DEVICE_STATE_H

#include "protocol/dec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Parts of the reply: bits of gpDeviceState's parameter. */
enum gp_state_part {
	/* Values that only NVML knows: words from GP_STATE_NVML on, and texts. */
	GP_STATE_SENSORS = 1,
	/* Processes and their memory; cannot be combined with GP_STATE_TIMES. */
	GP_STATE_PROCESSES = 2,
	GP_STATE_TIMES = 4, /* processes and their GPU time instead of their memory */
};

/* Value of a word that is unknown to the worker or was not received. */
#define GP_STATE_NONE UINT64_MAX

enum gp_state_word {
	GP_STATE_MEMORY_TOTAL = 0, /* bytes; as cuMemGetInfo() reports them to the session */
	GP_STATE_MEMORY_FREE = 1,
	/* nvmlSystemGetCudaDriverVersion_v2; the first word that only NVML knows */
	GP_STATE_SYSTEM_CUDA = 2,
	GP_STATE_BAR1_TOTAL = 3, /* bytes; nvmlDeviceGetBAR1MemoryInfo */
	GP_STATE_BAR1_FREE = 4,
	GP_STATE_PCI_ID = 5, /* nvmlDeviceGetPciInfo_v3 */
	GP_STATE_PCI_SUBSYSTEM = 6,
	GP_STATE_NVML = 2,         /* first word that only NVML knows: GP_STATE_SYSTEM_CUDA */
	GP_STATE_POWER_MIN = 54,   /* minimum power limit; the maximum is the next word */
	GP_STATE_TEMPERATURE = 70, /* nvmlDeviceGetTemperature */
	/* first of GP_STATE_LINKS words: nvmlDeviceGetNvLinkState of each link */
	GP_STATE_LINK = 102,
	/* first of GP_STATE_LINKS words: nvmlDeviceGetNvLinkRemoteDeviceType */
	GP_STATE_LINK_TYPE = 120,
	GP_STATE_LINKS = 18, /* maximum number of links of a device */
	GP_STATE_WORDS = 138,
};

/* NVML functions with one unsigned int result. W(word, function): f(device, unsigned int *) */
#define GP_STATE_UINT(W)                                                                           \
	W(8, nvmlDeviceGetPowerUsage)                                                              \
	W(9, nvmlDeviceGetEnforcedPowerLimit)                                                      \
	W(10, nvmlDeviceGetPowerManagementLimit)                                                   \
	W(11, nvmlDeviceGetPowerManagementDefaultLimit)                                            \
	W(12, nvmlDeviceGetPowerManagementMode)                                                    \
	W(13, nvmlDeviceGetPerformanceState)                                                       \
	W(14, nvmlDeviceGetPowerState)                                                             \
	W(15, nvmlDeviceGetFanSpeed)                                                               \
	W(16, nvmlDeviceGetNumFans)                                                                \
	W(17, nvmlDeviceGetPersistenceMode)                                                        \
	W(18, nvmlDeviceGetComputeMode)                                                            \
	W(19, nvmlDeviceGetBrand)                                                                  \
	W(20, nvmlDeviceGetArchitecture)                                                           \
	W(21, nvmlDeviceGetNumGpuCores)                                                            \
	W(22, nvmlDeviceGetMemoryBusWidth)                                                         \
	W(23, nvmlDeviceGetCurrPcieLinkGeneration)                                                 \
	W(24, nvmlDeviceGetCurrPcieLinkWidth)                                                      \
	W(25, nvmlDeviceGetMaxPcieLinkGeneration)                                                  \
	W(26, nvmlDeviceGetMaxPcieLinkWidth)                                                       \
	W(27, nvmlDeviceGetGpuMaxPcieLinkGeneration)                                               \
	W(28, nvmlDeviceGetPcieReplayCounter)                                                      \
	W(29, nvmlDeviceGetDisplayMode)                                                            \
	W(30, nvmlDeviceGetDisplayActive)                                                          \
	W(31, nvmlDeviceGetBoardId)                                                                \
	W(32, nvmlDeviceGetMultiGpuBoard)                                                          \
	W(33, nvmlDeviceGetInforomConfigurationChecksum)                                           \
	W(34, nvmlDeviceGetPcieSpeed)                                                              \
	W(35, nvmlDeviceGetPcieLinkMaxSpeed)                                                       \
	W(36, nvmlDeviceGetIrqNum)                                                                 \
	W(37, nvmlDeviceGetBusType)                                                                \
	W(38, nvmlDeviceGetPowerSource)                                                            \
	W(39, nvmlDeviceGetAdaptiveClockInfoStatus)                                                \
	W(40, nvmlDeviceGetRetiredPagesPendingStatus)                                              \
	W(41, nvmlDeviceGetDefaultEccMode)                                                         \
	W(42, nvmlDeviceGetModuleId)

/* NVML functions with one unsigned long long result: f(device, unsigned long long *) */
#define GP_STATE_ULONG(W)                                                                          \
	W(50, nvmlDeviceGetTotalEnergyConsumption)                                                 \
	W(51, nvmlDeviceGetCurrentClocksThrottleReasons)                                           \
	W(52, nvmlDeviceGetSupportedClocksThrottleReasons)

/* NVML functions with two results in two words: f(device, unsigned int *, unsigned int *) */
#define GP_STATE_PAIR(W)                                                                           \
	W(54, nvmlDeviceGetPowerManagementLimitConstraints)                                        \
	W(56, nvmlDeviceGetEccMode)                                                                \
	W(58, nvmlDeviceGetEncoderUtilization)                                                     \
	W(60, nvmlDeviceGetDecoderUtilization)                                                     \
	W(62, nvmlDeviceGetJpgUtilization)                                                         \
	W(64, nvmlDeviceGetOfaUtilization)                                                         \
	W(66, nvmlDeviceGetGspFirmwareMode)                                                        \
	W(100, nvmlDeviceGetMigMode)

/* NVML functions with a result struct of two unsigned ints: f(device, unsigned int[2]) */
#define GP_STATE_TWO(W) W(68, nvmlDeviceGetUtilizationRates)

/* NVML functions with an index argument. W(word, function, argument): f(device, argument, unsigned
 * int *) */
#define GP_STATE_UINT_INDEXED(W)                                                                   \
	W(70, nvmlDeviceGetTemperature, 0)                                                         \
	W(71, nvmlDeviceGetTemperatureThreshold, 0)                                                \
	W(72, nvmlDeviceGetTemperatureThreshold, 1)                                                \
	W(73, nvmlDeviceGetTemperatureThreshold, 2)                                                \
	W(74, nvmlDeviceGetTemperatureThreshold, 3)                                                \
	W(75, nvmlDeviceGetClockInfo, 0)                                                           \
	W(76, nvmlDeviceGetClockInfo, 1)                                                           \
	W(77, nvmlDeviceGetClockInfo, 2)                                                           \
	W(78, nvmlDeviceGetClockInfo, 3)                                                           \
	W(79, nvmlDeviceGetMaxClockInfo, 0)                                                        \
	W(80, nvmlDeviceGetMaxClockInfo, 1)                                                        \
	W(81, nvmlDeviceGetMaxClockInfo, 2)                                                        \
	W(82, nvmlDeviceGetMaxClockInfo, 3)                                                        \
	W(83, nvmlDeviceGetApplicationsClock, 0)                                                   \
	W(84, nvmlDeviceGetApplicationsClock, 2)                                                   \
	W(85, nvmlDeviceGetDefaultApplicationsClock, 0)                                            \
	W(86, nvmlDeviceGetDefaultApplicationsClock, 2)                                            \
	W(87, nvmlDeviceGetMaxCustomerBoostClock, 0)                                               \
	W(88, nvmlDeviceGetMaxCustomerBoostClock, 2)                                               \
	GP_STATE_PER_LINK(W, GP_STATE_LINK, nvmlDeviceGetNvLinkState)                              \
	GP_STATE_PER_LINK(W, GP_STATE_LINK_TYPE, nvmlDeviceGetNvLinkRemoteDeviceType)

/* A word for each NVLink, from the word `first` on. */
#define GP_STATE_PER_LINK(W, first, function)                                                      \
	W(first + 0, function, 0)                                                                  \
	W(first + 1, function, 1)                                                                  \
	W(first + 2, function, 2)                                                                  \
	W(first + 3, function, 3)                                                                  \
	W(first + 4, function, 4)                                                                  \
	W(first + 5, function, 5)                                                                  \
	W(first + 6, function, 6)                                                                  \
	W(first + 7, function, 7)                                                                  \
	W(first + 8, function, 8)                                                                  \
	W(first + 9, function, 9)                                                                  \
	W(first + 10, function, 10)                                                                \
	W(first + 11, function, 11)                                                                \
	W(first + 12, function, 12)                                                                \
	W(first + 13, function, 13)                                                                \
	W(first + 14, function, 14)                                                                \
	W(first + 15, function, 15)                                                                \
	W(first + 16, function, 16)                                                                \
	W(first + 17, function, 17)

/* NVML functions of ECC error counters. W(word, function, type, counter): f(device, type, counter,
 * unsigned long long *) */
#define GP_STATE_ECC(W)                                                                            \
	W(92, nvmlDeviceGetTotalEccErrors, 0, 0)                                                   \
	W(93, nvmlDeviceGetTotalEccErrors, 0, 1)                                                   \
	W(94, nvmlDeviceGetTotalEccErrors, 1, 0)                                                   \
	W(95, nvmlDeviceGetTotalEccErrors, 1, 1)

/* NVML functions with a text as result. T(text, function): f(char *, unsigned int) for the system,
 * f(device, char *, unsigned int) for the device. On the wire, texts follow each other, each with
 * its NUL; an empty text is unknown. */
#define GP_STATE_SYSTEM_TEXTS(T)                                                                   \
	T(0, nvmlSystemGetDriverVersion)                                                           \
	T(1, nvmlSystemGetNVMLVersion)
#define GP_STATE_DEVICE_TEXTS(T)                                                                   \
	T(2, nvmlDeviceGetSerial)                                                                  \
	T(3, nvmlDeviceGetVbiosVersion)                                                            \
	T(4, nvmlDeviceGetBoardPartNumber)                                                         \
	T(5, nvmlDeviceGetInforomImageVersion)
/* Numbers of single texts; the number of texts; and the maximum size of a text, including its
 * NUL. */
#define GP_STATE_SERIAL 2
#define GP_STATE_DRIVER_BRANCH 6 /* text of the system, from struct gp_driver_branch */
#define GP_STATE_TEXTS 7
#define GP_STATE_TEXT_MAX 96

/* Layout of NVML's struct for nvmlSystemGetDriverBranch. */
struct gp_driver_branch {
	uint32_t version; /* GP_DRIVER_BRANCH_VERSION, set before the call */
	char text[80];
};
#define GP_DRIVER_BRANCH_VERSION ((uint32_t)(sizeof(struct gp_driver_branch) | 1u << 24))

/* A process with GPU memory whose tenant and machine are those of the requesting client;
 * little-endian on the wire. */
struct gp_state_process {
	uint64_t pid;
	union {
		uint64_t memory; /* bytes of GPU memory; in a reply to GP_STATE_PROCESSES */
		/* GPU time of its kernels since its session began; in a reply to GP_STATE_TIMES */
		uint64_t gpu_ns;
	};
};
/* Maximum number of processes in a decoded reply; further ones are ignored. */
#define GP_STATE_PROCESSES_MAX 1024

/* A decoded reply. Unknown words are GP_STATE_NONE, unknown texts "". */
struct gp_device_state {
	uint64_t words[GP_STATE_WORDS];
	char texts[GP_STATE_TEXTS][GP_STATE_TEXT_MAX];
	size_t process_count;
	struct gp_state_process processes[GP_STATE_PROCESSES_MAX];
};

/* Decodes the three parts of a reply, which come from the network. Missing values become unknown;
 * surplus ones are ignored; texts are truncated to GP_STATE_TEXT_MAX - 1 characters. Returns true,
 * or false with *state unchanged if words or processes are not a multiple of their size, or the
 * last text has no NUL. */
bool gp_device_state_decode(struct gp_device_state *state, struct gp_bytes words,
			    struct gp_bytes texts, struct gp_bytes processes);

#endif /* GP_PROTOCOL_DEVICE_STATE_H */
