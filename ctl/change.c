/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/command.h"
#include "ctl/value.h"

#include <string.h>

#define SETTINGS_MAX 16

/* gpu=N, which is no setting of its own. */
static int
parse_gpu(const char *text, Gpupool__AdminSet *set)
{
	uint64_t gpu;

	if (!ctl_parse_number(text, 0, INT32_MAX - 1, &gpu))
		return ctl_fail("gpu=%s: that is no GPU's number, see gpupoolctl device list",
				text);
	set->device = (int32_t)gpu + 1;
	return 0;
}

static int
send_settings(const struct ctl *ctl, Gpupool__AdminSet *set, int count, char **words)
{
	Gpupool__AdminSetting settings[SETTINGS_MAX], *list[SETTINGS_MAX];
	Gpupool__AdminRequest request = GPUPOOL__ADMIN_REQUEST__INIT;

	set->settings = list;
	for (int i = 0; i < count; i++) {
		const char *wrong;

		if (strncmp(words[i], "gpu=", 4) == 0) {
			if (parse_gpu(words[i] + 4, set))
				return -1;
			continue;
		}
		if (set->n_settings == SETTINGS_MAX)
			return ctl_fail("more than %d settings", SETTINGS_MAX);
		wrong = ctl_parse_setting(words[i], &settings[set->n_settings]);
		if (wrong)
			return ctl_fail("%s: that %s", words[i], wrong);
		list[set->n_settings] = &settings[set->n_settings];
		set->n_settings++;
	}
	request.body_case = GPUPOOL__ADMIN_REQUEST__BODY_SET;
	request.set = set;
	return ctl_order(ctl, &request, CTL_PATIENCE_MS);
}

int
ctl_client_set(const struct ctl *ctl, int count, char **words)
{
	Gpupool__AdminSet set = GPUPOOL__ADMIN_SET__INIT;

	if (count < 2)
		return ctl_usage("client set ID [gpu=N] memory=BYTES | sm=N | priority=P ...");
	if (!ctl_parse_session(words[0], &set.session))
		return -1;
	return send_settings(ctl, &set, count - 1, words + 1);
}

int
ctl_tenant_set(const struct ctl *ctl, int count, char **words)
{
	Gpupool__AdminSet set = GPUPOOL__ADMIN_SET__INIT;

	if (count < 2)
		return ctl_usage(
			"tenant set NAME [gpu=N] memory=BYTES | sm=N | weight=N | "
			"limit=PERCENT | share=PERCENT | priority=P | bandwidth=BYTES ...");
	set.tenant = words[0];
	return send_settings(ctl, &set, count - 1, words + 1);
}

int
ctl_terminate(const struct ctl *ctl, uint64_t session)
{
	Gpupool__AdminTerminate terminate = GPUPOOL__ADMIN_TERMINATE__INIT;
	Gpupool__AdminRequest request = GPUPOOL__ADMIN_REQUEST__INIT;

	terminate.session = session;
	request.body_case = GPUPOOL__ADMIN_REQUEST__BODY_TERMINATE;
	request.terminate = &terminate;
	return ctl_order(ctl, &request, CTL_FOREVER);
}

int
ctl_client_terminate(const struct ctl *ctl, int count, char **words)
{
	uint64_t session;

	if (count != 1)
		return ctl_usage("client terminate ID");
	if (!ctl_parse_session(words[0], &session))
		return -1;
	return ctl_terminate(ctl, session);
}

int
ctl_start_drain(const struct ctl *ctl, bool undo, bool wait, int64_t patience_ms)
{
	Gpupool__AdminDrain drain = GPUPOOL__ADMIN_DRAIN__INIT;
	Gpupool__AdminRequest request = GPUPOOL__ADMIN_REQUEST__INIT;

	drain.undo = undo;
	drain.wait = wait;
	request.body_case = GPUPOOL__ADMIN_REQUEST__BODY_DRAIN;
	request.drain = &drain;
	return ctl_order(ctl, &request, patience_ms);
}

int
ctl_drain(const struct ctl *ctl, int count, char **words)
{
	bool undo = false, wait = false;

	for (int i = 0; i < count; i++) {
		if (strcmp(words[i], "--undo") == 0)
			undo = true;
		else if (strcmp(words[i], "--wait") == 0)
			wait = true;
		else
			return ctl_usage("drain [--wait | --undo]");
	}
	if (undo && wait)
		return ctl_usage("drain [--wait | --undo]");
	return ctl_start_drain(ctl, undo, wait, wait ? CTL_FOREVER : CTL_PATIENCE_MS);
}

int
ctl_reload(const struct ctl *ctl, int count, char **words)
{
	Gpupool__AdminReload reload = GPUPOOL__ADMIN_RELOAD__INIT;
	Gpupool__AdminRequest request = GPUPOOL__ADMIN_REQUEST__INIT;

	if (count)
		return ctl_usage("reload");
	request.body_case = GPUPOOL__ADMIN_REQUEST__BODY_RELOAD;
	request.reload = &reload;
	return ctl_order(ctl, &request, CTL_PATIENCE_MS);
}

int
ctl_shut_down(const struct ctl *ctl)
{
	Gpupool__AdminShutdown shutdown = GPUPOOL__ADMIN_SHUTDOWN__INIT;
	Gpupool__AdminRequest request = GPUPOOL__ADMIN_REQUEST__INIT;

	request.body_case = GPUPOOL__ADMIN_REQUEST__BODY_SHUTDOWN;
	request.shutdown = &shutdown;
	return ctl_order(ctl, &request, CTL_PATIENCE_MS);
}
