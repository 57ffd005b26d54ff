/* SPDX-License-Identifier: Apache-2.0 */
#include "client/connect/credentials.h"

#include "base/environment.h"
#include "client/base/config.h"
#include "client/base/pools.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Set and not empty, or NULL. */
static const char *
value_of(const char *name)
{
	const char *text = gp_environment_get(name);

	return text && *text ? text : NULL;
}

static char *
copy(const char *text)
{
	return text && *text ? strdup(text) : NULL;
}

static int
find_pool(const struct gp_url *url, struct gpc_credentials *credentials, char *error,
	  size_t error_size)
{
	const struct gpc_pool *pool;
	struct gpc_pools pools;
	int r = gpc_pools_choose(&pools, url, &pool, error, error_size);

	if (pool) {
		(void)snprintf(credentials->pool, sizeof(credentials->pool), "%s", pool->name);
		credentials->token = copy(pool->token);
		credentials->authority = copy(pool->authority);
		credentials->certificate = copy(pool->certificate);
		credentials->key = copy(pool->key);
		credentials->crl = copy(pool->crl);
	}
	gpc_pools_free(&pools);
	return r;
}

int
gpc_credentials_find(const struct gp_url *url, struct gpc_credentials *credentials, char *error,
		     size_t error_size)
{
	*credentials = (struct gpc_credentials){ .pool = "" };
	if (!gpc_config_tls())
		return url ? find_pool(url, credentials, error, error_size) : 0;
	credentials->token = copy(value_of("GPUPOOL_TOKEN_FILE"));
	credentials->authority = copy(value_of("GPUPOOL_TLS_CA"));
	credentials->certificate = copy(value_of("GPUPOOL_TLS_CERT"));
	credentials->key = copy(value_of("GPUPOOL_TLS_KEY"));
	credentials->crl = copy(value_of("GPUPOOL_TLS_CRL"));
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
