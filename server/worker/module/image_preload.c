/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/module/image_preload.h"

#include "protocol/control.h"
#include "protocol/image_info.h"
#include "server/common/ledger/ledger.h"
#include "server/worker/image_cache/image_cache.h"
#include "server/worker/module/image.h"
#include "server/worker/module/image_bytes.h"
#include "server/worker/session/session.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* Per program. A Welcome with all of it stays below GPD_CHANNEL_MAX. */
#define IMAGES_MAX 256
#define INFO_MAX ((size_t)64 << 10)
/* Larger descriptions would leave no room for others; the client gets a digest instead. */
#define INFO_OF_IMAGE_MAX ((size_t)4 << 10)
/* Per tenant and in total: at most 12 MiB. */
#define PROGRAMS_OF_TENANT_MAX 16
#define PROGRAMS_MAX 128
/* Maximum size of variables that are charged before the session uses them. */
#define VARIABLES_MAX ((uint64_t)64 << 10)

/* An image that a program has loaded. */
struct used {
	struct used *prev, *next;
	struct gpd_image_key key;
	int device;
	uint8_t digest[GP_SHA256_SIZE];
	size_t info_size; /* 0: the client gets the digest */
	uint8_t info[];
};

struct program {
	struct program *prev, *next;
	uint8_t key[GPD_PROGRAM_KEY_SIZE];
	uint64_t tenant;     /* identity in the ledger */
	struct used *images; /* utlist, most recently loaded first */
	unsigned int count;
	size_t info_size;
};

static struct {
	pthread_mutex_t lock;
	struct program *programs; /* utlist, most recently used first */
} memory = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* Uses the identity: an entry of the ledger may be reused for another tenant, which must not learn
 * about this one. */
static uint64_t
get_tenant(const struct gpd_session *session)
{
	const struct gpd_account *account = &session->account;

	return account->ledger->tenants[account->entry->tenant].identity;
}

static void
program_drop_image(struct program *program, struct used *used)
{
	DL_DELETE(program->images, used);
	program->count--;
	program->info_size -= used->info_size;
	free(used);
}

static void
drop_program(struct program *program)
{
	while (program->images)
		program_drop_image(program, program->images);
	DL_DELETE(memory.programs, program);
	free(program);
}

/* Drops the least recently used program of the tenant, or of all, beyond the limits. */
static void
programs_make_room(uint64_t tenant)
{
	struct program *program, *oldest = NULL, *own = NULL;
	unsigned int all = 0, of_tenant = 0;

	DL_FOREACH(memory.programs, program)
	{
		oldest = program;
		all++;
		if (program->tenant == tenant) {
			own = program;
			of_tenant++;
		}
	}
	if (of_tenant >= PROGRAMS_OF_TENANT_MAX)
		drop_program(own);
	else if (all >= PROGRAMS_MAX)
		drop_program(oldest);
}

static struct program *
find_program(uint64_t tenant, const uint8_t key[GPD_PROGRAM_KEY_SIZE])
{
	struct program *program;

	DL_FOREACH(memory.programs, program)
	{
		if (program->tenant == tenant &&
		    memcmp(program->key, key, sizeof(program->key)) == 0)
			break;
	}
	if (!program)
		return NULL;
	DL_DELETE(memory.programs, program);
	DL_PREPEND(memory.programs, program);
	return program;
}

static struct program *
add_program(uint64_t tenant, const uint8_t key[GPD_PROGRAM_KEY_SIZE])
{
	struct program *program = calloc(1, sizeof(*program));

	if (!program)
		return NULL;
	programs_make_room(tenant);
	program->tenant = tenant;
	memcpy(program->key, key, sizeof(program->key));
	DL_PREPEND(memory.programs, program);
	return program;
}

/* The least recently loaded image that still has its description. */
static struct used *
used_find_oldest_full(struct program *program)
{
	struct used *used, *oldest = NULL;

	DL_FOREACH(program->images, used)
	{
		if (used->info_size)
			oldest = used;
	}
	return oldest;
}

static void
used_drop_info(struct program *program, struct used *used)
{
	program->info_size -= used->info_size;
	used->info_size = 0;
}

static void
program_add_image(struct program *program, struct used *new)
{
	struct used *used, *next;

	DL_FOREACH_SAFE(program->images, used, next)
	{
		if (used->device == new->device &&
		    memcmp(used->key.sha256, new->key.sha256, sizeof(used->key.sha256)) == 0)
			program_drop_image(program, used);
	}
	DL_PREPEND(program->images, new);
	program->count++;
	program->info_size += new->info_size;
	if (program->count > IMAGES_MAX)
		program_drop_image(program, program->images->prev);
	while (program->info_size > INFO_MAX)
		used_drop_info(program, used_find_oldest_full(program));
}

void
gpd_preload_learn(const struct gpd_session *session, struct gpd_blob *blob, int device,
		  struct gp_bytes info)
{
	uint64_t tenant = get_tenant(session);
	const size_t info_size = info.size > INFO_OF_IMAGE_MAX ? 0 : info.size;
	struct program *program;
	struct used *used;

	if (!session->modules->has_program)
		return;
	used = calloc(1, sizeof(*used) + info_size);
	if (!used || gp_image_info_digest(info, used->digest)) {
		free(used);
		return;
	}
	used->device = device;
	used->key = blob->key;
	used->info_size = info_size;
	memcpy(used->info, info.data, info_size);
	pthread_mutex_lock(&memory.lock);
	program = find_program(tenant, session->modules->program);
	if (!program)
		program = add_program(tenant, session->modules->program);
	if (program)
		program_add_image(program, used);
	else
		free(used);
	pthread_mutex_unlock(&memory.lock);
}

/* Charges what a load would; does not wait. */
static bool
preload_charge(struct gpd_session *session, struct gpd_preload *preload)
{
	struct gpd_account *account = &session->account;
	struct gpd_image_uses uses = preload->blob->uses;
	uint64_t size =
		preload->blob->key.size + gpd_image_driver_size(preload->blob, preload->device);

	if (uses.variables > VARIABLES_MAX ||
	    !gpd_ledger_charge(account->ledger, account->entry, GPD_LEDGER_CODE, size))
		return false;
	preload->code = size;
	if (uses.variables &&
	    !gpd_ledger_charge(account->ledger, account->entry, preload->device, uses.variables))
		return false;
	preload->variables = uses.variables;
	return true;
}

void
gpd_preload_release(struct gpd_session *session, struct gpd_preload *preload)
{
	gpd_account_uncharge_code(&session->account, preload->code);
	gpd_account_free(&session->account, preload->device, preload->variables);
	gpd_blob_unref(preload->blob);
	free(preload);
}

static bool
preload(struct gpd_session *session, const struct used *used)
{
	struct gpd_preload *preload;

	if (!gpd_account_may_use(&session->account, used->device))
		return false;
	preload = calloc(1, sizeof(*preload));
	if (!preload)
		return false;
	preload->device = used->device;
	preload->blob = gpd_image_cache_find(&used->key);
	if (!preload->blob || !preload_charge(session, preload)) {
		gpd_preload_release(session, preload);
		return false;
	}
	LL_PREPEND(session->modules->preloads, preload);
	return true;
}

static struct gp_bytes
known_images_pack(Gpupool__KnownImage **images, size_t count)
{
	Gpupool__KnownImages all = GPUPOOL__KNOWN_IMAGES__INIT;
	struct gp_bytes packed = { 0 };
	uint8_t *room;

	all.n_images = count;
	all.images = images;
	packed.size = gpupool__known_images__get_packed_size(&all);
	room = malloc(packed.size);
	if (room)
		(void)gpupool__known_images__pack(&all, room);
	packed.data = room;
	return room ? packed : (struct gp_bytes){ 0 };
}

/* Preloads the images, most recently loaded first. */
static struct gp_bytes
preload_add_all(struct gpd_session *session, struct program *program)
{
	Gpupool__KnownImage images[IMAGES_MAX], *list[IMAGES_MAX];
	struct gp_bytes packed = { 0 };
	struct used *used;
	size_t count = 0;

	DL_FOREACH(program->images, used)
	{
		if (!preload(session, used))
			continue;
		gpupool__known_image__init(&images[count]);
		images[count].sha256 =
			(ProtobufCBinaryData){ sizeof(used->key.sha256), used->key.sha256 };
		images[count].device = used->device;
		if (used->info_size)
			images[count].info = (ProtobufCBinaryData){ used->info_size, used->info };
		else
			images[count].digest =
				(ProtobufCBinaryData){ sizeof(used->digest), used->digest };
		list[count] = &images[count];
		count++;
	}
	if (count)
		packed = known_images_pack(list, count);
	return packed;
}

struct gp_bytes
gpd_preload_create_all(struct gpd_session *session, const uint8_t key[GPD_PROGRAM_KEY_SIZE])
{
	static const uint8_t none[GPD_PROGRAM_KEY_SIZE];
	struct gp_bytes packed = { 0 };
	struct program *program;

	session->modules->has_program = memcmp(key, none, sizeof(none)) != 0;
	if (!session->modules->has_program)
		return packed;
	memcpy(session->modules->program, key, sizeof(session->modules->program));
	pthread_mutex_lock(&memory.lock);
	program = find_program(get_tenant(session), key);
	if (program)
		packed = preload_add_all(session, program);
	pthread_mutex_unlock(&memory.lock);
	return packed;
}

struct gpd_preload *
gpd_preload_pop(struct gpd_session *session, struct gp_bytes sha256, int device)
{
	struct gpd_preload *found;

	LL_FOREACH(session->modules->preloads, found)
	{
		if (found->device == device && sha256.size == GPD_SHA256_SIZE &&
		    memcmp(found->blob->key.sha256, sha256.data, GPD_SHA256_SIZE) == 0)
			break;
	}
	if (found)
		LL_DELETE(session->modules->preloads, found);
	return found;
}

/* The list begins with the image unloaded last; those beyond the limits are dropped. */
static void
retired_trim(struct gpd_session *session, unsigned int count_max, uint64_t bytes_max)
{
	struct gpd_preload *preload, *next;
	uint64_t bytes = 0;
	unsigned int count = 0;

	LL_FOREACH_SAFE(session->modules->preloads, preload, next)
	{
		if (!preload->retired)
			continue;
		count++;
		bytes += preload->blob->key.size;
		if (count <= count_max && bytes <= bytes_max)
			continue;
		LL_DELETE(session->modules->preloads, preload);
		gpd_preload_release(session, preload);
	}
}

void
gpd_preload_retire(struct gpd_session *session, struct gpd_blob *blob, int device, uint64_t code)
{
	struct gpd_preload *preload = calloc(1, sizeof(*preload));

	if (!preload) {
		gpd_account_uncharge_code(&session->account, code);
		return;
	}
	gpd_blob_ref(blob);
	*preload = (struct gpd_preload){
		.blob = blob, .device = device, .code = code, .retired = true
	};
	LL_PREPEND(session->modules->preloads, preload);
	retired_trim(session, GP_RETIRED_MAX, GP_RETIRED_BYTES);
}

void
gpd_preload_drop_retired(struct gpd_session *session)
{
	retired_trim(session, 0, 0);
}

void
gpd_preload_drop_all(struct gpd_session *session)
{
	struct gpd_preload *preload;

	while ((preload = session->modules->preloads)) {
		LL_DELETE(session->modules->preloads, preload);
		gpd_preload_release(session, preload);
	}
}
