/* SPDX-License-Identifier: Apache-2.0 */
#include "client/connect/credentials.h"

#include "base/environment.h"
#include "client/base/config.h"
#include "client/base/pools.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns the value, or NULL if it is not set or empty. */
static const char *
environment_get(const char *name)
{
	const char *text = gp_environment_get(name);

	return text && *text ? text : NULL;
}

static char *
text_copy(const char *text)
{
	return text && *text ? strdup(text) : NULL;
}

static int
credentials_find_pool(const struct gp_url *url, struct gpc_credentials *credentials, char *error,
		      size_t error_size)
{
	const struct gpc_pool_config *pool;
	struct gpc_pools_config pools;
	int r = gpc_pools_config_select(&pools, url, &pool, error, error_size);

	if (pool) {
		(void)snprintf(credentials->pool, sizeof(credentials->pool), "%s", pool->name);
		credentials->token = text_copy(pool->token);
		credentials->authority = text_copy(pool->authority);
		credentials->certificate = text_copy(pool->certificate);
		credentials->key = text_copy(pool->key);
		credentials->crl = text_copy(pool->crl);
	}
	gpc_pools_config_free(&pools);
	return r;
}

int
gpc_credentials_find(const struct gp_url *url, struct gpc_credentials *credentials, char *error,
		     size_t error_size)
{
	*credentials = (struct gpc_credentials){ .pool = "" };
	if (!gpc_config_has_credentials())
		return url ? credentials_find_pool(url, credentials, error, error_size) : 0;
	credentials->token = text_copy(environment_get("GPUPOOL_TOKEN_FILE"));
	credentials->authority = text_copy(environment_get("GPUPOOL_TLS_CA"));
	credentials->certificate = text_copy(environment_get("GPUPOOL_TLS_CERT"));
	credentials->key = text_copy(environment_get("GPUPOOL_TLS_KEY"));
	credentials->crl = text_copy(environment_get("GPUPOOL_TLS_CRL"));
	return 0;
}

void
gpc_credentials_fini(struct gpc_credentials *credentials)
{
	free(credentials->token);
	free(credentials->authority);
	free(credentials->certificate);
	free(credentials->key);
	free(credentials->crl);
	*credentials = (struct gpc_credentials){ .pool = "" };
}

bool
gpc_credentials_any(const struct gpc_credentials *credentials)
{
	return credentials->token || credentials->authority || credentials->certificate ||
	       credentials->key || credentials->crl;
}

const char *
gpc_credentials_name(const struct gpc_credentials *credentials, const char *variable,
		     const char *key, char *text, size_t size)
{
	if (*credentials->pool)
		(void)snprintf(text, size, "%s of pool %s", key, credentials->pool);
	else
		(void)snprintf(text, size, "%s", variable);
	return text;
}
