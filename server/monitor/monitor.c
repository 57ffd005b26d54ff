/* SPDX-License-Identifier: Apache-2.0 */
#include "server/monitor/monitor.h"

#include "base/clock.h"
#include "server/common/base/device_list.h"
#include "server/common/base/log.h"
#include "server/common/ledger/channel.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>

#define LIBRARY "libnvidia-ml.so.1"
/* Longest wait for an event, and so the delay of an answer to the supervisor. */
#define WAIT_MS 500
/* How often a device is checked to be on the bus, which not every driver reports as an event. */
#define CHECK_MS 5000

/* Declarations of NVML, as far as they are used here. */
typedef int answer;
typedef void *device;
typedef void *event_set;
struct event_data {
	device device;
	unsigned long long type, data;
	unsigned int gpu_instance, compute_instance;
};
enum {
	SUCCESS = 0,
	TIMEOUT = 10,
	GPU_IS_LOST = 15
};
#define EVENT_DOUBLE_BIT_ECC 2ull
#define EVENT_XID 8ull

static struct {
	answer (*init)(void);
	answer (*device_by_uuid)(const char *uuid, device *device_p);
	answer (*device_get_types)(device device, unsigned long long *types_p);
	answer (*device_register)(device device, unsigned long long types, event_set set);
	answer (*device_get_temperature)(device device, int sensor, unsigned int *celsius_p);
	answer (*set_create)(event_set *set_p);
	answer (*set_wait)(event_set set, struct event_data *data, unsigned int timeout_ms);
} nvml;

static const struct {
	const char *name;
	void **function;
} symbols[] = {
	{ "nvmlInit_v2", (void **)&nvml.init },
	{ "nvmlDeviceGetHandleByUUID", (void **)&nvml.device_by_uuid },
	{ "nvmlDeviceGetSupportedEventTypes", (void **)&nvml.device_get_types },
	{ "nvmlDeviceRegisterEvents", (void **)&nvml.device_register },
	{ "nvmlDeviceGetTemperature", (void **)&nvml.device_get_temperature },
	{ "nvmlEventSetCreate", (void **)&nvml.set_create },
	{ "nvmlEventSetWait_v2", (void **)&nvml.set_wait },
};

struct monitor {
	struct gpd_channel channel;
	event_set set;
	device devices[GPD_DEVICE_LIST_MAX]; /* NULL: not watched */
	bool lost[GPD_DEVICE_LIST_MAX];      /* has been reported */
};

/* Returns NULL, or why there is no NVML with events. */
static const char *
nvml_open(const char *path)
{
	void *library = dlopen(path ? path : LIBRARY, RTLD_NOW | RTLD_LOCAL);

	if (!library)
		return "the driver has no NVML (libnvidia-ml.so.1)";
	for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
		*symbols[i].function = dlsym(library, symbols[i].name);
		if (!*symbols[i].function)
			return "the driver's NVML has no events";
	}
	return nvml.init() == SUCCESS ? NULL : "the driver's NVML does not start";
}

/* Returns whether the device's events are watched from now on. */
static bool
device_watch(struct monitor *m, const struct gpd_device_list *list, int ordinal)
{
	unsigned long long types = 0;
	char uuid[GPD_DEVICE_UUID_TEXT_SIZE];
	device found = NULL;

	gpd_device_list_format_uuid(list, ordinal, uuid);
	if (nvml.device_by_uuid(uuid, &found) != SUCCESS ||
	    nvml.device_get_types(found, &types) != SUCCESS)
		return false;
	types &= EVENT_DOUBLE_BIT_ECC | EVENT_XID;
	if (!types || nvml.device_register(found, types, m->set) != SUCCESS)
		return false;
	m->devices[ordinal] = found;
	return true;
}

static void
report(struct monitor *m, int ordinal, enum gpd_device_event_kind kind, uint32_t number)
{
	const struct gpd_channel_header header = { .type = GPD_CHANNEL_DEVICE_EVENT,
						   .result = ordinal };
	const struct gpd_device_event event = { .kind = (uint32_t)kind, .number = number };

	(void)gpd_channel_send(&m->channel, &header, &event, sizeof(event), -1);
}

static void
report_event(struct monitor *m, const struct event_data *data)
{
	for (int i = 0; i < GPD_DEVICE_LIST_MAX; i++) {
		if (m->devices[i] && m->devices[i] == data->device)
			report(m, i,
			       data->type == EVENT_XID ? GPD_DEVICE_EVENT_XID
						       : GPD_DEVICE_EVENT_DOUBLE_BIT_ECC,
			       (uint32_t)data->data);
	}
}

/* Reports devices that have fallen off the bus. NVML answers so to every query of the device. */
static void
check_lost(struct monitor *m)
{
	unsigned int celsius;

	for (int i = 0; i < GPD_DEVICE_LIST_MAX; i++) {
		if (!m->devices[i] || m->lost[i] ||
		    nvml.device_get_temperature(m->devices[i], 0, &celsius) != GPU_IS_LOST)
			continue;
		m->lost[i] = true;
		report(m, i, GPD_DEVICE_EVENT_LOST, 0);
	}
}

/* Answers the supervisor. Returns false when it has closed the channel. */
static bool
answer_supervisor(struct monitor *m)
{
	static const struct gpd_channel_header pong = { .type = GPD_CHANNEL_PONG };
	struct gpd_channel_message message;
	int r;

	while ((r = gpd_channel_recv(&m->channel, false, &message)) == 0) {
		if (message.header.type == GPD_CHANNEL_STOP)
			return false;
		if (message.header.type == GPD_CHANNEL_PING)
			(void)gpd_channel_send(&m->channel, &pong, NULL, 0, -1);
	}
	return r == GP_E_TIMEOUT;
}

static void
watch(struct monitor *m)
{
	int64_t check_ms = 0;

	while (answer_supervisor(m)) {
		struct event_data data = { 0 };
		int64_t begin_ms = gp_now_ms();
		answer r = nvml.set_wait(m->set, &data, WAIT_MS);

		if (r == SUCCESS)
			report_event(m, &data);
		else if (r != TIMEOUT && gp_now_ms() - begin_ms < WAIT_MS)
			gp_sleep_ns((uint64_t)WAIT_MS * 1000000);
		if (r == GPU_IS_LOST || gp_now_ms() >= check_ms) {
			check_lost(m);
			check_ms = gp_now_ms() + CHECK_MS;
		}
	}
}

int
gpd_monitor_run(const struct gpd_monitor_options *options)
{
	struct gpd_channel_header header = { .type = GPD_CHANNEL_FAILED };
	struct monitor m = { .set = NULL };
	const char *wrong;
	uint32_t watched = 0;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	(void)signal(SIGINT, SIG_IGN);
	(void)signal(SIGTERM, SIG_IGN);
	(void)signal(SIGHUP, SIG_IGN);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)prctl(PR_SET_NAME, "gpupoold-monitor", 0, 0, 0);
	if (gpd_channel_init(&m.channel, options->fd))
		return 1;
	wrong = nvml_open(options->library);
	if (!wrong && nvml.set_create(&m.set) != SUCCESS)
		wrong = "the driver's NVML has no events";
	for (int i = 0; !wrong && i < options->devices->count; i++) {
		if (gpd_device_list_has(options->devices, i) &&
		    device_watch(&m, options->devices, i))
			watched |= UINT32_C(1) << i;
	}
	if (!wrong && !watched)
		wrong = "no device reports events to the driver's NVML";
	if (wrong) {
		(void)gpd_channel_send(&m.channel, &header, wrong, strlen(wrong), -1);
		gpd_channel_fini(&m.channel);
		return 1;
	}
	header.type = GPD_CHANNEL_MONITORS;
	header.result = (int32_t)watched;
	(void)gpd_channel_send(&m.channel, &header, NULL, 0, -1);
	watch(&m);
	gpd_channel_fini(&m.channel);
	return 0;
}
