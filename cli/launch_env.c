/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/launch_env.h"

#include "cli/command.h"
#include "cli/library.h"
#include "ctl/value.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GPUS 'g'
#define MEMORY 'm'
#define SM 's'
#define WAIT 'w'

const struct option cli_launch_option_table[] = {
	{ "pool", required_argument, NULL, 'p' },      { "gpus", required_argument, NULL, GPUS },
	{ "memory", required_argument, NULL, MEMORY }, { "sm", required_argument, NULL, SM },
	{ "wait", required_argument, NULL, WAIT },     { NULL, 0, NULL, 0 },
};

static const char *
getenv_nonempty(const char *name)
{
	const char *text = getenv(name);

	return text && *text ? text : NULL;
}

bool
cli_launch_options_parse(struct cli_launch_options *launch_options, int option, const char *value)
{
	const struct {
		int option;
		const char *name, **value_p;
	} options[] = {
		{ 'p', "pool", &launch_options->pool },
		{ GPUS, "gpus", &launch_options->gpus },
		{ MEMORY, "memory", &launch_options->memory },
		{ SM, "sm", &launch_options->sm },
		{ WAIT, "wait", &launch_options->wait },
	};

	for (size_t i = 0; i < COUNT(options); i++) {
		const char *wrong;

		if (options[i].option != option)
			continue;
		*options[i].value_p = value;
		wrong = cli_pools_check(options[i].name, value);
		if (wrong)
			(void)cli_fail("--%s: %s", options[i].name, wrong);
		return !wrong;
	}
	return false;
}

/* format NULL: the variable is to be unset. CLI_VARIABLES_MAX is sufficient for all callers. */
static void __attribute__((format(printf, 3, 4)))
env_add(struct cli_launch_env *launch_env, const char *name, const char *format, ...)
{
	va_list arguments;
	char *value = NULL;

	if (format) {
		va_start(arguments, format);
		if (vasprintf(&value, format, arguments) < 0)
			value = NULL;
		va_end(arguments);
		if (!value) {
			(void)cli_fail("out of memory");
			exit(CLI_FAILED);
		}
	}
	launch_env->variables[launch_env->count].name = name;
	launch_env->variables[launch_env->count++].value = value;
}

/* Sets the pool's value, or unsets the variable: the value in the environment belongs to another
 * pool, and must not be sent to this one. */
static void
env_add_or_unset(struct cli_launch_env *launch_env, const char *name, const char *value)
{
	if (*value)
		env_add(launch_env, name, "%s", value);
	else if (getenv(name))
		env_add(launch_env, name, NULL);
}

static int
pool_check_files(const struct gpc_pool_config *pool)
{
	const struct {
		const char *key, *path, *remedy;
	} files[] = {
		{ "token", pool->token, ": \"gpupool login\" stores it again" },
		{ "authority", pool->authority, "" },
		{ "certificate", pool->certificate, "" },
		{ "key", pool->key, "" },
		{ "crl", pool->crl, "" },
	};

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		if (*files[i].path && access(files[i].path, R_OK))
			return cli_fail("%s:%d: [pool %s] %s: %s: %s%s", pool->file, pool->line,
					pool->name, files[i].key, files[i].path, strerror(errno),
					files[i].remedy);
	}
	return 0;
}

static int
pool_use(struct cli_launch_env *launch_env, const struct gpc_pool_config *pool)
{
	launch_env->pool = *pool;
	(void)snprintf(launch_env->pool_origin, sizeof(launch_env->pool_origin), "pool %s of %s:%d",
		       pool->name, pool->file, pool->line);
	gpc_pool_config_find_token(&launch_env->pool);
	if (pool_check_files(&launch_env->pool))
		return CLI_FAILED;
	if (!*launch_env->pool.token && !*launch_env->pool.certificate &&
	    getenv_nonempty("GPUPOOL_TOKEN_FILE"))
		cli_warn("GPUPOOL_TOKEN_FILE=%s ignored: not known to be a token of pool %s; "
			 "\"gpupool login %s < FILE\" stores it for the pool",
			 getenv_nonempty("GPUPOOL_TOKEN_FILE"), pool->name, pool->name);
	env_add(launch_env, "REMOTE_GPU", "%s", pool->url);
	env_add_or_unset(launch_env, "GPUPOOL_TOKEN_FILE", launch_env->pool.token);
	env_add_or_unset(launch_env, "GPUPOOL_TLS_CA", launch_env->pool.authority);
	env_add_or_unset(launch_env, "GPUPOOL_TLS_CERT", launch_env->pool.certificate);
	env_add_or_unset(launch_env, "GPUPOOL_TLS_KEY", launch_env->pool.key);
	env_add_or_unset(launch_env, "GPUPOOL_TLS_CRL", launch_env->pool.crl);
	env_add_or_unset(launch_env, "GPUPOOL_TENANT", launch_env->pool.tenant);
	return 0;
}

static void
address_use(struct cli_launch_env *launch_env, const char *address, const char *pool_origin)
{
	(void)snprintf(launch_env->pool.url, sizeof(launch_env->pool.url), "%s", address);
	(void)snprintf(launch_env->pool_origin, sizeof(launch_env->pool_origin), "%s", pool_origin);
	env_add(launch_env, "REMOTE_GPU", "%s", address);
}

static int
pool_select(const struct cli_launch_options *launch_options, struct cli_launch_env *launch_env)
{
	const char *name =
		launch_options->pool ? launch_options->pool : getenv_nonempty("GPUPOOL_POOL");
	const char *remote = getenv_nonempty("REMOTE_GPU");
	char error[CLI_ERROR_MAX];
	struct gpc_pools_config pools;
	const struct gpc_pool_config *pool, *same[2];
	const char *pool_origin;
	int r;

	pool_origin = launch_options->pool ? "--pool" : "GPUPOOL_POOL";
	if (name && strstr(name, "://")) {
		address_use(launch_env, name, pool_origin);
		return 0;
	}
	if (!name && remote) {
		address_use(launch_env, remote, "REMOTE_GPU");
		return 0;
	}
	r = cli_pools_read(&pools);
	if (r) {
		gpc_pools_config_free(&pools);
		return r;
	}
	pool = name ? cli_pools_find(&pools, name) : pools.count ? &pools.list[0] : NULL;
	if (pool) {
		r = pool_use(launch_env, pool);
	} else if (name && cli_pools_with_address(&pools, name, same) > 0) {
		/* The client library finds the scheme and the credentials by the address. */
		address_use(launch_env, name, pool_origin);
	} else if (name) {
		cli_pools_explain(&pools, name, error, sizeof(error));
		r = cli_fail("%s", error);
	} else {
		r = cli_fail("no pool: add one with \"gpupool login NAME tls://HOST < "
			     "TOKEN_FILE\", or set REMOTE_GPU");
	}
	gpc_pools_config_free(&pools);
	return r;
}

/* Selects the first N of the devices that the program would see. */
static void
add_gpus(struct cli_launch_env *launch_env, const char *text)
{
	const char *visible = getenv_nonempty("CUDA_VISIBLE_DEVICES");
	unsigned long wanted = strtoul(text, NULL, 10);
	char list[1024] = "";

	for (unsigned long i = 0; i < wanted && (!visible || *visible); i++) {
		size_t length = visible ? strcspn(visible, ",") : 0;
		size_t used = strlen(list);

		if (visible)
			(void)snprintf(list + used, sizeof(list) - used, "%s%.*s", i ? "," : "",
				       (int)length, visible);
		else
			(void)snprintf(list + used, sizeof(list) - used, "%s%lu", i ? "," : "", i);
		if (visible)
			visible += length + (visible[length] == ',');
	}
	env_add(launch_env, "CUDA_VISIBLE_DEVICES", "%s", list);
}

/* In whole MiB, in the format of MPS. */
static void
add_memory(struct cli_launch_env *launch_env, const char *text)
{
	uint64_t bytes = 0;

	(void)ctl_parse_bytes(text, &bytes);
	env_add(launch_env, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "*=%lluM",
		(unsigned long long)bytes >> 20);
}

static void
add_sm(struct cli_launch_env *launch_env, const char *text)
{
	uint32_t hundredths = 0;

	(void)ctl_parse_percent(text, &hundredths);
	env_add(launch_env, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "%u.%02u", hundredths / 100,
		hundredths % 100);
}

static void
env_add_limits(const struct cli_launch_options *launch_options, struct cli_launch_env *launch_env)
{
	const char *gpus = launch_options->gpus ? launch_options->gpus : launch_env->pool.gpus;
	const char *memory =
		launch_options->memory ? launch_options->memory : launch_env->pool.memory;
	const char *sm = launch_options->sm ? launch_options->sm : launch_env->pool.sm;
	const char *wait = launch_options->wait ? launch_options->wait : launch_env->pool.wait;

	if (*gpus)
		add_gpus(launch_env, gpus);
	if (*memory)
		add_memory(launch_env, memory);
	if (*sm)
		add_sm(launch_env, sm);
	if (*wait)
		env_add(launch_env, "GPUPOOL_WAIT", "%s", wait);
}

/* Puts the folder first, and removes other occurrences. */
static void
add_library_path(struct cli_launch_env *launch_env)
{
	const char *list = getenv_nonempty("LD_LIBRARY_PATH");
	size_t size = strlen(launch_env->folder);
	char *rest = calloc(1, list ? strlen(list) + 2 : 1);

	while (rest && list && *list) {
		size_t length = strcspn(list, ":");

		if (length != size || strncmp(list, launch_env->folder, size) != 0)
			(void)sprintf(rest + strlen(rest), ":%.*s", (int)length, list);
		list += length + (list[length] == ':');
	}
	env_add(launch_env, "LD_LIBRARY_PATH", "%s%s", launch_env->folder, rest ? rest : "");
	free(rest);
}

int
cli_launch_env_select(const struct cli_launch_options *launch_options,
		      struct cli_launch_env *launch_env)
{
	int r;

	*launch_env = (struct cli_launch_env){ 0 };
	r = pool_select(launch_options, launch_env);
	if (r)
		return r;
	if (cli_library_find(launch_env->folder, sizeof(launch_env->folder),
			     launch_env->library_error, sizeof(launch_env->library_error)))
		add_library_path(launch_env);
	env_add_limits(launch_options, launch_env);
	return 0;
}

void
cli_launch_env_free(struct cli_launch_env *launch_env)
{
	for (int i = 0; i < launch_env->count; i++)
		free(launch_env->variables[i].value);
	launch_env->count = 0;
}

int
cli_launch_env_apply(const struct cli_launch_env *launch_env)
{
	for (int i = 0; i < launch_env->count; i++) {
		const char *name = launch_env->variables[i].name,
			   *value = launch_env->variables[i].value;

		if (value ? setenv(name, value, 1) : unsetenv(name))
			return cli_fail("%s: %s", name, strerror(errno));
	}
	return 0;
}
