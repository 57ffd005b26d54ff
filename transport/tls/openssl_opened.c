/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Defines every function of openssl_calls.h as a jump through a pointer, which gp_openssl_open()
 * sets. Before that, and without OpenSSL, each function does nothing and returns 0: code that has
 * not opened OpenSSL only ever frees NULL.
 */
#include "transport/tls/openssl.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SSL "libssl.so.3"
#define CRYPTO "libcrypto.so.3"

static long
stub_return_zero(void)
{
	return 0;
}

/* The names are defined in assembler only, so that they cannot conflict with declarations in
 * OpenSSL's headers. */
#define CALL(name)                                                                                 \
	extern void *gp_openssl_place_##name __attribute__((visibility("hidden")));                \
	void *gp_openssl_place_##name = (void *)stub_return_zero;                                  \
	JUMP(#name, "gp_openssl_place_" #name)

#if defined(__x86_64__)
#define JUMP(name, place)                                                                          \
	__asm__(".text\n.globl " name "\n.hidden " name "\n.type " name ",@function\n" name        \
		":\n\tendbr64\n\tjmp *" place "(%rip)\n.size " name ",.-" name "\n");
#elif defined(__aarch64__)
#define JUMP(name, place)                                                                          \
	__asm__(".text\n.globl " name "\n.hidden " name "\n.type " name                            \
		",@function\n.balign 4\n" name ":\n\thint 34\n\tadrp x16, " place                  \
		"\n\tldr x16, [x16, :lo12:" place "]\n\tbr x16\n.size " name ",.-" name "\n");
#else
#error "the way to OpenSSL is written for x86-64 and aarch64"
#endif

#include "transport/tls/openssl_calls.h"
#undef CALL

static const struct {
	const char *name;
	void **place;
} calls[] = {
#define CALL(name) { #name, &gp_openssl_place_##name },
#include "transport/tls/openssl_calls.h"
#undef CALL
};

static char error_text[320];
static bool is_open;

/* Returns the directory of the library or program that contains this code. */
static bool
library_get_directory(char *folder, size_t size)
{
	char *slash = NULL;
	Dl_info info;

	if (dladdr(calls, &info) && strchr(info.dli_fname, '/')) {
		if (snprintf(folder, size, "%s", info.dli_fname) < (int)size)
			slash = strrchr(folder, '/');
	} else { /* a program that was found through PATH */
		ssize_t length = readlink("/proc/self/exe", folder, size - 1);

		folder[length > 0 ? length : 0] = '\0';
		slash = strrchr(folder, '/');
	}
	if (slash)
		*slash = '\0';
	return slash;
}

static void *
library_open_bundled(const char *name)
{
	/* Relative to the library, and to gpupool(1). */
	static const char *const places[] = { "openssl", "../lib/gpupool/openssl" };
	char folder[PATH_MAX], path[PATH_MAX + 64];
	void *library = NULL;

	if (!library_get_directory(folder, sizeof(folder)))
		return NULL;
	for (size_t i = 0; !library && i < sizeof(places) / sizeof(places[0]); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s/%s", folder, places[i], name);
		library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	}
	return library;
}

/*
 * Opens the system's library, or a copy in a directory of its own next to this library. Not in this
 * library's directory itself, because there the loader would also find it for the program, which
 * must use the system's.
 */
static void *
library_open(void)
{
	void *library = dlopen(SSL, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);

	if (library)
		return library;
	(void)snprintf(error_text, sizeof(error_text),
		       "TLS needs OpenSSL 3 (%s): install it (Debian: libssl3), or put " SSL
		       " and " CRYPTO " into the directory openssl next to gpupool's libcuda.so.1",
		       dlerror());
	/* libssl finds libcrypto if it is already loaded. */
	return library_open_bundled(CRYPTO) ? library_open_bundled(SSL) : NULL;
}

static void
library_load(void)
{
	const size_t count = sizeof(calls) / sizeof(calls[0]);
	void *library = library_open(), *found[sizeof(calls) / sizeof(calls[0])];

	if (!library)
		return;
	/* Includes libcrypto's functions: dlsym() also searches the dependencies. */
	for (size_t i = 0; i < count; i++) {
		found[i] = dlsym(library, calls[i].name);
		if (!found[i]) {
			(void)snprintf(error_text, sizeof(error_text),
				       "incomplete OpenSSL: symbol %s not found", calls[i].name);
			return;
		}
	}
	for (size_t i = 0; i < count; i++)
		*calls[i].place = found[i];
	is_open = true;
}

bool
gp_openssl_open(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, library_load);
	return is_open;
}

const char *
gp_openssl_get_error(void)
{
	return error_text;
}
