/* SPDX-License-Identifier: Apache-2.0 */
/* Preload: the images of programs that a worker remembers and announces to their later sessions. */
#include "base/sha256.h"
#include "image/fatbin.h"
#include "protocol/control.h"
#include "protocol/image_info.h"
#include "server/common/ledger/ledger.h"
#include "server/worker/image_cache/image_cache.h"
#include "server/worker/module/image_preload.h"
#include "tests/test.h"
#include "tests/unit/server/fake_session.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct fake_session fake;
static size_t size; /* of an image */
static size_t text_size;
static uint8_t program[GPD_PROGRAM_KEY_SIZE];

static int
setup(void **state)
{
	fake_session_create(&fake);
	gpd_image_cache_start("", &(struct gpd_image_cache_limits){ (uint64_t)1 << 20, 0 });
	/* Each case has a program of its own: nothing is forgotten between them. */
	program[0]++;
	return 0;
}

static int
teardown(void **state)
{
	gpd_preload_drop_all(&fake.session);
	gpd_image_cache_stop();
	fake_session_destroy(&fake);
	return 0;
}

/* An image of its own for each number, with a variable. */
static struct gpd_blob *
blob_of(int number)
{
	uint8_t sha256[GPD_SHA256_SIZE];
	struct gp_image *image;
	struct gpd_blob *blob;
	char text[64];
	void *flat, *bytes;

	text_size = 1 + (size_t)snprintf(text, sizeof(text), ".version 8.0\n.global .b32 v[%d];\n",
					 1000 + number);
	assert_int_equal(gp_image_create(text, &image), 0);
	assert_int_equal(gp_image_flatten(image, NULL, &flat, &size), 0);
	gp_image_destroy(image);
	bytes = gpd_image_bytes_alloc(size);
	memcpy(bytes, flat, size);
	free(flat);
	assert_int_equal(EVP_Digest(bytes, size, sha256, NULL, EVP_sha256(), NULL), 1);
	blob = gpd_image_cache_add(NULL, sha256, bytes, size);
	assert_non_null(blob);
	return blob;
}

/* Preloads for a session of the program. Returns the number of images that it is told about. */
static size_t
promised(void)
{
	struct gp_bytes packed = gpd_preload_create_all(&fake.session, program);
	Gpupool__KnownImages *all = gpupool__known_images__unpack(NULL, packed.size, packed.data);
	size_t count;

	assert_non_null(all);
	count = all->n_images;
	gpupool__known_images__free_unpacked(all, NULL);
	free((void *)packed.data);
	return count;
}

/* An image with one kernel, whose name has this length. */
static void
remember(int number, size_t name_size)
{
	struct gpd_blob *blob = blob_of(number);
	char *name = calloc(1, name_size + 1);
	struct gp_kernel_info kernel = { .name = name, .attributes_known = 1, .attributes = { 7 } };
	const struct gp_image_info info = { .kernel_count = 1, .kernels = &kernel };
	struct gp_bytes bytes;
	void *data;

	memset(name, 'k', name_size);
	assert_int_equal(gp_image_info_encode(&info, &data, &bytes.size), 0);
	bytes.data = data;
	gpd_preload_learn(&fake.session, blob, 0, bytes);
	free(data);
	free(name);
	gpd_blob_unref(blob);
}

/* Of how many the next session is told everything, and of how many a digest, which is right. */
static void
told_of(size_t whole, size_t digests, size_t name_size)
{
	struct gp_bytes packed = gpd_preload_create_all(&fake.session, program);
	Gpupool__KnownImages *all = gpupool__known_images__unpack(NULL, packed.size, packed.data);
	char *name = calloc(1, name_size + 1);
	struct gp_kernel_info kernel = { .name = name };
	const struct gp_image_info info = { .kernel_count = 1, .kernels = &kernel };
	uint8_t digest[GP_SHA256_SIZE];
	size_t size_of_info;
	void *data;

	memset(name, 'k', name_size);
	assert_int_equal(gp_image_info_encode(&info, &data, &size_of_info), 0);
	gp_sha256(data, size_of_info, digest);
	free(data);
	free(name);
	assert_non_null(all);
	assert_int_equal(all->n_images, whole + digests);
	for (size_t i = 0; i < all->n_images; i++) {
		const Gpupool__KnownImage *image = all->images[i];

		assert_true(!image->info.len == !!image->digest.len);
		whole -= image->info.len > 0;
		if (image->info.len)
			continue;
		assert_int_equal(image->digest.len, sizeof(digest));
		assert_memory_equal(image->digest.data, digest, sizeof(digest));
	}
	assert_int_equal(whole, 0);
	gpupool__known_images__free_unpacked(all, NULL);
	free((void *)packed.data);
	gpd_preload_drop_all(&fake.session);
}

static uint64_t
code(void)
{
	return fake_session_allocated(&fake, GPD_LEDGER_CODE);
}

#define TEST(test) UNIT_TEST_WITH(test, setup, teardown)

TEST(test_kept_once)
{
	struct gpd_blob *blob = blob_of(1);
	struct gp_bytes sha256 = { blob->key.sha256, GPD_SHA256_SIZE };
	uint64_t before = fake_session_allocated(&fake, 0);
	struct gpd_preload *promise;

	assert_int_equal(promised(), 0);
	remember(1, 8);
	assert_null(gpd_preload_pop(&fake.session, sha256, 0));
	assert_int_equal(promised(), 1);
	assert_int_equal(code(), size + text_size);
	assert_int_equal(fake_session_allocated(&fake, 0), before + 4 * 1001);
	assert_null(gpd_preload_pop(&fake.session, sha256, 1));
	assert_null(gpd_preload_pop(&fake.session, (struct gp_bytes){ sha256.data, 3 }, 0));
	promise = gpd_preload_pop(&fake.session, sha256, 0);
	assert_non_null(promise);
	assert_ptr_equal(promise->blob, blob);
	assert_null(gpd_preload_pop(&fake.session, sha256, 0));
	gpd_preload_release(&fake.session, promise);
	assert_int_equal(code(), 0);
	assert_int_equal(fake_session_allocated(&fake, 0), before);
	gpd_blob_unref(blob);
}

TEST(test_given_back)
{
	assert_int_equal(promised(), 0);
	remember(1, 8);
	remember(2, 8);
	/* It is one image, however often it is loaded. */
	remember(1, 8);
	assert_int_equal(promised(), 2);
	assert_int_equal(code(), 2 * (size + text_size));
	gpd_preload_drop_all(&fake.session);
	assert_int_equal(code(), 0);
}

TEST(test_of_whom)
{
	uint32_t tenant = fake.session.account.entry->tenant;

	assert_int_equal(promised(), 0);
	remember(1, 8);
	gpd_ledger_add_tenant(fake.ledger, tenant + 1, "b");
	fake.session.account.entry->tenant = tenant + 1;
	assert_int_equal(promised(), 0);
	remember(1, 8);
	assert_int_equal(promised(), 1);
	gpd_preload_drop_all(&fake.session);
	/* The line is another tenant's now. */
	gpd_ledger_add_tenant(fake.ledger, tenant + 1, "c");
	assert_int_equal(promised(), 0);
	fake.session.account.entry->tenant = tenant;
	program[1]++;
	assert_int_equal(promised(), 0);
	program[1]--;
	assert_int_equal(promised(), 1);
	gpd_preload_drop_all(&fake.session);
	atomic_store(&fake.session.account.entry->devices[0].allowed, false);
	assert_int_equal(promised(), 0);
	atomic_store(&fake.session.account.entry->devices[0].allowed, true);
}

/* A client that does not name its program gets no preload. */
TEST(test_no_program)
{
	const uint8_t none[GPD_PROGRAM_KEY_SIZE] = { 0 };
	struct gp_bytes packed = gpd_preload_create_all(&fake.session, none);

	assert_int_equal(packed.size, 0);
	remember(1, 8);
	packed = gpd_preload_create_all(&fake.session, none);
	assert_int_equal(packed.size, 0);
}

TEST(test_gone_from_memory)
{
	assert_int_equal(promised(), 0);
	remember(1, 8);
	gpd_image_cache_stop();
	gpd_image_cache_start("", &(struct gpd_image_cache_limits){ (uint64_t)1 << 20, 0 });
	assert_int_equal(promised(), 0);
	assert_int_equal(code(), 0);
}

TEST(test_limits)
{
	assert_int_equal(promised(), 0);
	for (int i = 0; i < 260; i++)
		remember(i, 8);
	told_of(256, 0, 0);
	/* Of those with much to tell digests are told, and of the oldest, where others take the
	 * room. */
	program[1]++;
	assert_int_equal(promised(), 0);
	for (int i = 0; i < 3; i++)
		remember(100 + i, 5000);
	told_of(0, 3, 5000);
	program[1]++;
	assert_int_equal(promised(), 0);
	for (int i = 0; i < 20; i++)
		remember(100 + i, 3900);
	told_of(16, 4, 3900);
	program[1] = 0;
}

/* As an image does that the session unloads. */
static struct gpd_blob *
retire(int number, int device)
{
	struct gpd_blob *blob = blob_of(number);

	assert_int_equal(gpd_account_charge_code(&fake.session.account, size), CUDA_SUCCESS);
	gpd_preload_retire(&fake.session, blob, device, size);
	return blob;
}

static struct gpd_preload *
keep(struct gpd_blob *blob)
{
	const struct gp_bytes sha256 = { blob->key.sha256, GPD_SHA256_SIZE };

	return gpd_preload_pop(&fake.session, sha256, 0);
}

/* What the session has unloaded stays, charged, whatever the cache forgets; its variables do not.
 */
TEST(test_retired)
{
	struct gpd_blob *blob = retire(1, 0), *elsewhere = retire(2, 1);
	uint64_t before = fake_session_allocated(&fake, 0);
	struct gpd_preload *promise;

	assert_int_equal(code(), 2 * size);
	assert_null(keep(elsewhere));
	promise = keep(blob);
	assert_non_null(promise);
	assert_true(promise->retired);
	assert_int_equal(promise->code, size);
	assert_int_equal(promise->variables, 0);
	assert_int_equal(fake_session_allocated(&fake, 0), before);
	assert_null(keep(blob));
	gpd_preload_release(&fake.session, promise);
	assert_int_equal(code(), size);
	gpd_preload_drop_retired(&fake.session);
	assert_int_equal(code(), 0);
	gpd_blob_unref(blob);
	gpd_blob_unref(elsewhere);
}

/* The oldest goes; what a program was promised at its beginning is not counted, and stays. */
TEST(test_retired_limits)
{
	struct gpd_blob *first, *second;
	struct gpd_preload *promise;

	assert_int_equal(promised(), 0);
	remember(1000, 8);
	assert_int_equal(promised(), 1);
	first = retire(0, 0);
	second = retire(1, 0);
	for (int i = 2; i <= GP_RETIRED_MAX; i++)
		gpd_blob_unref(retire(i, 0));
	assert_int_equal(code(), (GP_RETIRED_MAX + 1) * size + text_size);
	assert_null(keep(first));
	promise = keep(second);
	assert_non_null(promise);
	gpd_preload_release(&fake.session, promise);
	gpd_preload_drop_retired(&fake.session);
	assert_int_equal(code(), size + text_size);
	gpd_preload_drop_all(&fake.session);
	assert_int_equal(code(), 0);
	gpd_blob_unref(first);
	gpd_blob_unref(second);
}

/* A tenant that has many programs forgets its own, and not another's. */
TEST(test_programs)
{
	uint32_t *tenant = &fake.session.account.entry->tenant, own = *tenant;

	assert_int_equal(promised(), 0);
	gpd_ledger_add_tenant(fake.ledger, own + 1, "b");
	*tenant = own + 1;
	assert_int_equal(promised(), 0);
	remember(1, 8);
	*tenant = own;
	for (int i = 1; i <= 20; i++) {
		program[1] = (uint8_t)i;
		assert_int_equal(promised(), 0);
		remember(1, 8);
	}
	program[1] = 1;
	assert_int_equal(promised(), 0);
	program[1] = 20;
	assert_int_equal(promised(), 1);
	gpd_preload_drop_all(&fake.session);
	program[1] = 0;
	*tenant = own + 1;
	assert_int_equal(promised(), 1);
	gpd_preload_drop_all(&fake.session);
	*tenant = own;
}

UNIT_TEST_MAIN(NULL, NULL)
