/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/choice.h"

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

const struct option cli_wish_options[] = {
	{ "pool", required_argument, NULL, 'p' },      { "gpus", required_argument, NULL, GPUS },
	{ "memory", required_argument, NULL, MEMORY }, { "sm", required_argument, NULL, SM },
	{ "wait", required_argument, NULL, WAIT },     { NULL, 0, NULL, 0 },
};

static const char *
value_of(const char *name)
{
	const char *text = getenv(name);

	return text && *text ? text : NULL;
}

bool
cli_wish_take(struct cli_wish *wish, int option, const char *value)
{
	const char *wrong = NULL, *name = "";

	switch (option) {
	case 'p':
		wish->pool = value;
		return true;
	case GPUS:
		wish->gpus = value;
		wrong = cli_check_gpus(value);
		name = "gpus";
		break;
	case MEMORY:
		wish->memory = value;
		wrong = cli_check_memory(value);
		name = "memory";
		break;
	case SM:
		wish->sm = value;
		wrong = cli_check_sm(value);
		name = "sm";
		break;
	case WAIT:
		wish->wait = value;
		wrong = cli_check_wait(value);
		name = "wait";
		break;
	default:
		return false;
	}
	if (wrong)
		(void)cli_fail("--%s: \"%s\" %s", name, value, wrong);
	return !wrong;
}

/* value: NULL to take the variable away.  Nobody sets more than there is room for. */
static void __attribute__((format(printf, 3, 4)))
add(struct cli_choice *choice, const char *name, const char *format, ...)
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
			exit(CLI_WRONG);
		}
	}
	choice->variables[choice->count].name = name;
	choice->variables[choice->count++].value = value;
}

/* The pool's, or none: what the environment has is for another pool, which would learn of it. */
static void
add_own(struct cli_choice *choice, const char *name, const char *value)
{
	if (*value)
		add(choice, name, "%s", value);
	else if (getenv(name))
		add(choice, name, NULL);
}

static int
check_files(const struct gpc_pool *pool)
{
	const struct {
		const char *key, *path, *remedy;
	} files[] = {
		{ "token", pool->token, ": \"gpupool login\" stores it anew" },
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
use_pool(struct cli_choice *choice, const struct gpc_pool *pool)
{
	choice->pool = *pool;
	(void)snprintf(choice->whence, sizeof(choice->whence), "pool %s of %s:%d", pool->name,
		       pool->file, pool->line);
	gpc_pool_find_token(&choice->pool);
	if (check_files(&choice->pool))
		return CLI_WRONG;
	if (!*choice->pool.token && !*choice->pool.certificate && value_of("GPUPOOL_TOKEN_FILE"))
		cli_warn("GPUPOOL_TOKEN_FILE=%s is not used: it need not be for pool %s; \"gpupool "
			 "login "
			 "%s < FILE\" says that it is",
			 value_of("GPUPOOL_TOKEN_FILE"), pool->name, pool->name);
	add(choice, "REMOTE_GPU", "%s", pool->url);
	add_own(choice, "GPUPOOL_TOKEN_FILE", choice->pool.token);
	add_own(choice, "GPUPOOL_TLS_CA", choice->pool.authority);
	add_own(choice, "GPUPOOL_TLS_CERT", choice->pool.certificate);
	add_own(choice, "GPUPOOL_TLS_KEY", choice->pool.key);
	add_own(choice, "GPUPOOL_TLS_CRL", choice->pool.crl);
	add_own(choice, "GPUPOOL_TENANT", choice->pool.tenant);
	return 0;
}

static void
use_address(struct cli_choice *choice, const char *address, const char *whence)
{
	(void)snprintf(choice->pool.url, sizeof(choice->pool.url), "%s", address);
	(void)snprintf(choice->whence, sizeof(choice->whence), "%s", whence);
	add(choice, "REMOTE_GPU", "%s", address);
}

static int
choose_pool(const struct cli_wish *wish, struct cli_choice *choice)
{
	const char *name = wish->pool ? wish->pool : value_of("GPUPOOL_POOL");
	const char *remote = value_of("REMOTE_GPU");
	char error[CLI_ERROR_MAX];
	struct gpc_pools pools;
	const struct gpc_pool *pool, *same[2];
	const char *whence;
	int r;

	whence = wish->pool ? "--pool" : "GPUPOOL_POOL";
	if (name && strstr(name, "://")) {
		use_address(choice, name, whence);
		return 0;
	}
	if (!name && remote) {
		use_address(choice, remote, "REMOTE_GPU");
		return 0;
	}
	r = cli_pools_read(&pools, error, sizeof(error));
	if (r) {
		gpc_pools_free(&pools);
		return cli_fail("%s", error);
	}
	pool = name ? cli_pools_find(&pools, name) : pools.count ? &pools.list[0] : NULL;
	if (pool) {
		r = use_pool(choice, pool);
	} else if (name && cli_pools_with_address(&pools, name, same) > 0) {
		/* The client library finds its scheme and its credentials. */
		use_address(choice, name, whence);
	} else if (name) {
		cli_pools_explain(&pools, name, error, sizeof(error));
		r = cli_fail("%s", error);
	} else {
		r = cli_fail("which pool? \"gpupool login NAME tls://HOST < TOKEN_FILE\" makes one "
			     "known, or REMOTE_GPU names it");
	}
	gpc_pools_free(&pools);
	return r;
}

/* The first N of those that the program would see. */
static void
add_gpus(struct cli_choice *choice, const char *text)
{
	const char *visible = value_of("CUDA_VISIBLE_DEVICES");
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
	add(choice, "CUDA_VISIBLE_DEVICES", "%s", list);
}

/* In whole MiB, as MPS writes it. */
static void
add_memory(struct cli_choice *choice, const char *text)
{
	uint64_t bytes = 0;

	(void)ctl_parse_bytes(text, &bytes);
	add(choice, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "*=%lluM", (unsigned long long)bytes >> 20);
}

static void
add_sm(struct cli_choice *choice, const char *text)
{
	uint32_t hundredths = 0;

	(void)ctl_parse_percent(text, &hundredths);
	add(choice, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "%u.%02u", hundredths / 100,
	    hundredths % 100);
}

static void
add_wishes(const struct cli_wish *wish, struct cli_choice *choice)
{
	const char *gpus = wish->gpus ? wish->gpus : choice->pool.gpus;
	const char *memory = wish->memory ? wish->memory : choice->pool.memory;
	const char *sm = wish->sm ? wish->sm : choice->pool.sm;
	const char *wait = wish->wait ? wish->wait : choice->pool.wait;

	if (*gpus)
		add_gpus(choice, gpus);
	if (*memory)
		add_memory(choice, memory);
	if (*sm)
		add_sm(choice, sm);
	if (*wait)
		add(choice, "GPUPOOL_WAIT", "%s", wait);
}

/* The folder first, and once. */
static void
add_library_path(struct cli_choice *choice)
{
	const char *list = value_of("LD_LIBRARY_PATH");
	size_t size = strlen(choice->folder);
	char *rest = calloc(1, list ? strlen(list) + 2 : 1);

	while (rest && list && *list) {
		size_t length = strcspn(list, ":");

		if (length != size || strncmp(list, choice->folder, size) != 0)
			(void)sprintf(rest + strlen(rest), ":%.*s", (int)length, list);
		list += length + (list[length] == ':');
	}
	add(choice, "LD_LIBRARY_PATH", "%s%s", choice->folder, rest ? rest : "");
	free(rest);
}

int
cli_choose(const struct cli_wish *wish, struct cli_choice *choice)
{
	int r;

	*choice = (struct cli_choice){ 0 };
	r = choose_pool(wish, choice);
	if (r)
		return r;
	if (cli_library_find(choice->folder, sizeof(choice->folder), choice->no_library,
			     sizeof(choice->no_library)))
		add_library_path(choice);
	add_wishes(wish, choice);
	return 0;
}

void
cli_choice_free(struct cli_choice *choice)
{
	for (int i = 0; i < choice->count; i++)
		free(choice->variables[i].value);
	choice->count = 0;
}

int
cli_choice_apply(const struct cli_choice *choice)
{
	for (int i = 0; i < choice->count; i++) {
		const char *name = choice->variables[i].name, *value = choice->variables[i].value;

		if (value ? setenv(name, value, 1) : unsetenv(name))
			return cli_fail("%s: %s", name, strerror(errno));
	}
	return 0;
}
