/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/device/nvml.h"

#include "base/clock.h"
#include "base/lock.h"
#include "server/common/base/log.h"
#include "server/worker/device/device.h"
#include "server/worker/device/driver.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LIBRARY "libnvidia-ml.so.1"
#define PROCESSES_MAX 256 /* more of them on one device are not read */
#define UUID_TEXT_SIZE 41 /* including "GPU-" */

/* Declarations of NVML, as far as they are used here. */
typedef int answer; /* 0: success */
typedef void *device;
struct bar1 {
	unsigned long long total, free, used;
};
struct pci {
	char short_bus_id[16];
	unsigned int domain, bus, device, id, subsystem;
	char bus_id[32];
};

struct memory {
	unsigned long long total, free, used;
};
/* nvmlProcessInfo_v2_t */
struct process {
	unsigned int pid;
	unsigned long long used; /* ULLONG_MAX: not known */
	unsigned int gpu_instance, compute_instance;
};

struct known {
	bool opened;
	device handle;    /* NULL: NVML does not have the device */
	uint64_t read_ns; /* 0: never */
	uint64_t words[GP_STATE_WORDS];
	char texts[GP_STATE_TEXTS][GP_STATE_TEXT_MAX];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool opened GP_GUARDED_BY(lock);
static void *library GP_GUARDED_BY(lock); /* NULL: not available */
static struct known all[GPD_DEVICES_MAX] GP_GUARDED_BY(lock);

/* Returns NULL for a function that an older NVML or the software device lacks. */
static void *
symbol_find(const char *name) GP_LOCKED(lock)
{
	return library ? dlsym(library, name) : NULL;
}

static void
open_library(void) GP_LOCKED(lock)
{
	answer (*init)(void);

	if (opened)
		return;
	opened = true;
	library = dlopen(gpd_driver.software ? gpd_driver.path : LIBRARY, RTLD_NOW | RTLD_LOCAL);
	*(void **)&init = symbol_find("nvmlInit_v2");
	if (init && init() == 0)
		return;
	gpd_info("no NVML here: sessions get no temperature, power and similar values");
	if (library)
		(void)dlclose(library);
	library = NULL;
}

static void
open_device(int ordinal, struct known *known) GP_LOCKED(lock)
{
	answer (*by_uuid)(const char *, device *);
	char text[UUID_TEXT_SIZE] = "GPU-";
	size_t length = strlen(text);
	CUuuid uuid;

	if (known->opened)
		return;
	known->opened = true;
	open_library();
	*(void **)&by_uuid = symbol_find("nvmlDeviceGetHandleByUUID");
	if (!by_uuid || gpd_driver.cuDeviceGetUuid_v2(&uuid, gpd_device_get(ordinal)->device))
		return;
	for (int i = 0; i < 16; i++)
		length += (size_t)snprintf(text + length, sizeof(text) - length, "%s%02x",
					   i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
					   (unsigned char)uuid.bytes[i]);
	if (by_uuid(text, &known->handle) != 0)
		known->handle = NULL;
}

enum shape {
	UINT,
	ULONG,
	PAIR,
	TWO,
	UINT_OF,
	ECC
};

static const struct row {
	uint8_t word;
	uint8_t shape;
	uint8_t a, b; /* arguments before the result */
	const char *name;
} rows[] = {
#define ROW(word, name) { word, SHAPE, 0, 0, #name },
#define SHAPE UINT
	GP_STATE_UINT(ROW)
#undef SHAPE
#define SHAPE ULONG
		GP_STATE_ULONG(ROW)
#undef SHAPE
#define SHAPE PAIR
			GP_STATE_PAIR(ROW)
#undef SHAPE
#define SHAPE TWO
				GP_STATE_TWO(ROW)
#undef SHAPE
#undef ROW
#define ROW(word, name, a) { word, UINT_OF, a, 0, #name },
					GP_STATE_UINT_INDEXED(ROW)
#undef ROW
#define ROW(word, name, a, b) { word, ECC, a, b, #name },
						GP_STATE_ECC(ROW)
#undef ROW
};

/* Leaves the words unchanged if the device does not report them. */
static void
value_query(const struct row *row, device handle, void *function, uint64_t *words)
{
	unsigned int values[2] = { 0, 0 };
	unsigned long long value = 0;
	bool two = row->shape == PAIR || row->shape == TWO;
	answer r;

	switch ((enum shape)row->shape) {
	case ULONG:
		r = ((answer(*)(device, unsigned long long *))function)(handle, &value);
		break;
	case PAIR:
		r = ((answer(*)(device, unsigned int *, unsigned int *))function)(
			handle, &values[0], &values[1]);
		break;
	case UINT_OF:
		r = ((answer(*)(device, int, unsigned int *))function)(handle, row->a, values);
		break;
	case ECC:
		r = ((answer(*)(device, int, int, unsigned long long *))function)(handle, row->a,
										  row->b, &value);
		break;
	case UINT:
	case TWO:
	default:
		r = ((answer(*)(device, unsigned int *))function)(handle, values);
		break;
	}
	if (r != 0)
		return;
	words[row->word] = row->shape == ULONG || row->shape == ECC ? value : values[0];
	if (two)
		words[row->word + 1] = values[1];
}

static void
read_structs(struct known *known) GP_LOCKED(lock)
{
	answer (*bar1)(device, struct bar1 *), (*pci)(device, struct pci *), (*cuda)(int *);
	struct bar1 window;
	struct pci place;
	int version;

	*(void **)&cuda = symbol_find("nvmlSystemGetCudaDriverVersion_v2");
	if (cuda && cuda(&version) == 0 && version > 0)
		known->words[GP_STATE_SYSTEM_CUDA] = (uint64_t)version;
	*(void **)&bar1 = symbol_find("nvmlDeviceGetBAR1MemoryInfo");
	if (bar1 && bar1(known->handle, &window) == 0) {
		known->words[GP_STATE_BAR1_TOTAL] = window.total;
		known->words[GP_STATE_BAR1_FREE] = window.free;
	}
	*(void **)&pci = symbol_find("nvmlDeviceGetPciInfo_v3");
	if (pci && pci(known->handle, &place) == 0) {
		known->words[GP_STATE_PCI_ID] = place.id;
		known->words[GP_STATE_PCI_SUBSYSTEM] = place.subsystem;
	}
}

static void
read_texts(struct known *known) GP_LOCKED(lock)
{
	answer (*of_system)(char *, unsigned int), (*of_device)(device, char *, unsigned int);
	answer (*of_branch)(struct gp_driver_branch *, unsigned int);
	struct gp_driver_branch branch = { .version = GP_DRIVER_BRANCH_VERSION };

	memset(known->texts, 0, sizeof(known->texts));
#define TEXT(number, name)                                                                         \
	*(void **)&of_system = symbol_find(#name);                                                 \
	if (of_system && of_system(known->texts[number], GP_STATE_TEXT_MAX) != 0)                  \
		known->texts[number][0] = '\0';
	GP_STATE_SYSTEM_TEXTS(TEXT)
#undef TEXT
#define TEXT(number, name)                                                                         \
	*(void **)&of_device = symbol_find(#name);                                                 \
	if (of_device && of_device(known->handle, known->texts[number], GP_STATE_TEXT_MAX) != 0)   \
		known->texts[number][0] = '\0';
	GP_STATE_DEVICE_TEXTS(TEXT)
#undef TEXT
	*(void **)&of_branch = symbol_find("nvmlSystemGetDriverBranch");
	if (of_branch && of_branch(&branch, sizeof(branch.text)) == 0)
		memcpy(known->texts[GP_STATE_DRIVER_BRANCH], branch.text,
		       strnlen(branch.text, sizeof(branch.text)));
}

static void
device_refresh(int ordinal, struct known *known) GP_LOCKED(lock)
{
	open_device(ordinal, known);
	if (known->read_ns && gp_now_ns() - known->read_ns < GPD_NVML_AGE_NS)
		return;
	for (size_t i = 0; i < GP_STATE_WORDS; i++)
		known->words[i] = GP_STATE_NONE;
	if (known->handle) {
		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
			void *function = symbol_find(rows[i].name);

			if (function)
				value_query(&rows[i], known->handle, function, known->words);
		}
		read_structs(known);
		read_texts(known);
	}
	known->read_ns = gp_now_ns();
}

size_t
gpd_nvml_read(int ordinal, uint64_t words[GP_STATE_WORDS], char *texts)
{
	struct known *known = &all[ordinal];
	size_t size = 0;

	(void)pthread_mutex_lock(&lock);
	device_refresh(ordinal, known);
	memcpy(words + GP_STATE_NVML, known->words + GP_STATE_NVML,
	       (GP_STATE_WORDS - GP_STATE_NVML) * sizeof(*words));
	for (int i = 0; i < GP_STATE_TEXTS; i++) {
		size_t length = strnlen(known->texts[i], GP_STATE_TEXT_MAX - 1);

		memcpy(texts + size, known->texts[i], length);
		texts[size + length] = '\0';
		size += length + 1;
	}
	(void)pthread_mutex_unlock(&lock);
	return size;
}

static uint64_t
read_free(struct known *known) GP_LOCKED(lock)
{
	answer (*get_memory)(device, struct memory *);
	struct memory memory;

	*(void **)&get_memory = symbol_find("nvmlDeviceGetMemoryInfo");
	return known->handle && get_memory && get_memory(known->handle, &memory) == 0 ? memory.free
										      : 0;
}

/* Returns 0 if NVML does not find this process among those of the device. */
static uint64_t
read_own_use(struct known *known) GP_LOCKED(lock)
{
	answer (*get_processes)(device, unsigned int *, struct process *);
	struct process processes[PROCESSES_MAX] = { 0 };
	unsigned int count = PROCESSES_MAX;

	*(void **)&get_processes = symbol_find("nvmlDeviceGetComputeRunningProcesses_v3");
	if (!known->handle || !get_processes || get_processes(known->handle, &count, processes))
		return 0;
	for (unsigned int i = 0; i < count && i < PROCESSES_MAX; i++) {
		if (processes[i].pid == (unsigned int)getpid())
			return processes[i].used == ULLONG_MAX ? 0 : processes[i].used;
	}
	return 0;
}

uint64_t
gpd_nvml_get_free_memory(int ordinal)
{
	uint64_t free_memory;

	(void)pthread_mutex_lock(&lock);
	open_device(ordinal, &all[ordinal]);
	free_memory = read_free(&all[ordinal]);
	(void)pthread_mutex_unlock(&lock);
	return free_memory;
}

uint64_t
gpd_nvml_get_own_memory(int ordinal, uint64_t before)
{
	uint64_t used, now;

	(void)pthread_mutex_lock(&lock);
	open_device(ordinal, &all[ordinal]);
	used = read_own_use(&all[ordinal]);
	now = read_free(&all[ordinal]);
	(void)pthread_mutex_unlock(&lock);
	if (!used && now && now < before)
		used = before - now;
	return used;
}
