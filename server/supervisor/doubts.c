/* SPDX-License-Identifier: Apache-2.0 */
#include "server/supervisor/doubts.h"

#include "protocol/admin_messages.h"
#include "server/common/base/log.h"
#include "server/common/config/config_doubt.h"
#include "server/supervisor/door/tls_files.h"

#include <ctype.h>
#include <stdio.h>
#include <time.h>

#define DAY_MS INT64_C(86400000)
/* A token that expires sooner is spoken of, as the doctor does. */
#define TOKEN_SOON_S ((int64_t)7 * 86400)

static void
tell_log(void *arg, const char *text)
{
	gpd_warning("%s", text);
}

static void
tell_reloaded(void *arg, const char *text)
{
	gpd_reloaded_say(arg, GPD_LOG_WARNING, "%s", text);
}

static void
doubt_devices(const struct gpd_tenants *tenants, gpd_config_tell *tell, void *arg)
{
	struct gpd_config_device_facts facts[GPD_LEDGER_DEVICES];

	for (int d = 0; d < tenants->device_count; d++) {
		const struct gpd_tenants_device *device = &tenants->devices[d];
		ProtobufCBinaryData uuid = { sizeof(device->uuid), (uint8_t *)device->uuid };
		char text[GP_UUID_TEXT_SIZE];

		gp_admin_uuid(&uuid, text);
		for (char *c = text; *c; c++)
			*c = (char)tolower((unsigned char)*c);
		facts[d] = (struct gpd_config_device_facts){
			.memory = device->memory,
			.multiprocessors = device->multiprocessors,
		};
		(void)snprintf(facts[d].uuid, sizeof(facts[d].uuid), "%s", text);
	}
	if (tenants->device_count)
		gpd_config_doubt_devices(tenants->config, facts, tenants->device_count, tell, arg);
}

static void
doubt(const struct gpd_admission *admission, gpd_config_tell *tell, void *arg)
{
	const struct gpd_config *config = admission->quota->tenants.config;

	gpd_config_doubt(config, tell, arg);
	gpd_config_doubt_tokens(config, &admission->gate.store.tokens, (int64_t)time(NULL), tell,
				arg);
	doubt_devices(&admission->quota->tenants, tell, arg);
}

/* The next one, and how many others: there may be one for each of many short jobs. */
static void
check_tokens(const struct gpd_tokens *tokens)
{
	int64_t now_s = (int64_t)time(NULL);
	const struct gpd_token *next = NULL;
	int count = 0;

	for (size_t i = 0; i < tokens->count; i++) {
		const struct gpd_token *token = &tokens->list[i];

		if (token->revoked_s != INT64_MAX || token->expires_s <= now_s ||
		    token->expires_s == INT64_MAX || token->expires_s - now_s > TOKEN_SOON_S)
			continue;
		count++;
		if (!next || token->expires_s < next->expires_s)
			next = token;
	}
	if (next)
		gpd_warning("%d token%s within 7 days, %s of tenant %s in %d hours: gpupoolctl "
			    "token list",
			    count, count == 1 ? " expires" : "s expire", next->id, next->tenant,
			    (int)((next->expires_s - now_s) / 3600));
}

void
gpd_doubts_start(const struct gpd_admission *admission, const struct gpd_options *options)
{
	const struct gpd_config *config = admission->quota->tenants.config;

	if (config->file)
		gpd_info("configuration: %s: %d tenant%s", config->file, config->tenant_count,
			 config->tenant_count == 1 ? "" : "s");
	else if (options->usual_config[0])
		gpd_info("no configuration: no quotas (%s is read if it is there)",
			 options->usual_config);
	else
		gpd_info("no configuration: no quotas (--config names one)");
	doubt(admission, tell_log, NULL);
	check_tokens(&admission->gate.store.tokens);
}

void
gpd_doubts_reload(const struct gpd_admission *admission, struct gpd_reloaded *reloaded)
{
	doubt(admission, tell_reloaded, reloaded);
}

void
gpd_doubts_watch(const struct gpd_admission *admission, int64_t now_ms)
{
	static int64_t next_ms;

	/* At the start it is said when the files are read. */
	if (next_ms && now_ms >= next_ms) {
		gpd_tls_check();
		gpd_crl_file_check(&admission->gate.revoked);
		check_tokens(&admission->gate.store.tokens);
	}
	if (!next_ms || now_ms >= next_ms)
		next_ms = now_ms + DAY_MS;
}
