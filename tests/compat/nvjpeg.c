/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvjpeg LIBRARY: opens NVIDIA's library for JPEG images, which has a CUDA runtime of its own
 * inside, on the first device, and closes it again.
 */
#include <dlfcn.h>
#include <stdio.h>

/* What nvjpeg.h declares, with its handles as plain pointers. */
typedef int nvjpeg_create_func(void **handle_p);
typedef int nvjpeg_state_create_func(void *handle, void **state_p);
typedef int nvjpeg_destroy_func(void *object);

static void *library;

static void *
need(const char *name)
{
	void *function = dlsym(library, name);

	if (!function)
		printf("no %s\n", name);
	return function;
}

static int
good(const char *what, int status)
{
	if (status)
		printf("%s: %d\n", what, status);
	return status == 0;
}

int
main(int argc, char **argv)
{
	nvjpeg_state_create_func *state_create;
	nvjpeg_destroy_func *state_destroy, *destroy;
	nvjpeg_create_func *create;
	void *handle, *state;

	library = argc == 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
	if (!library) {
		printf("%s\n", argc == 2 ? dlerror() : "usage: nvjpeg LIBRARY");
		return 2;
	}
	create = (nvjpeg_create_func *)need("nvjpegCreateSimple");
	state_create = (nvjpeg_state_create_func *)need("nvjpegJpegStateCreate");
	state_destroy = (nvjpeg_destroy_func *)need("nvjpegJpegStateDestroy");
	destroy = (nvjpeg_destroy_func *)need("nvjpegDestroy");
	if (!create || !state_create || !state_destroy || !destroy)
		return 2;

	for (int i = 0; i < 2; i++)
		if (!good("create", create(&handle)) ||
		    !good("create a state", state_create(handle, &state)) ||
		    !good("destroy the state", state_destroy(state)) ||
		    !good("destroy", destroy(handle)))
			return 1;
	printf("nvjpeg: ok\n");
	return 0;
}
