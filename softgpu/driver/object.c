/* SPDX-License-Identifier: Apache-2.0 */
#include "softgpu/driver/object.h"

#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct gs_object *live;

static struct gs_object *
counted(struct gs_object *object)
{
	return object->owner ? object->owner : object;
}

void
gs_object_init(struct gs_object *object, enum gs_kind kind, struct gs_object *owner,
	       void (*destroy)(struct gs_object *object))
{
	object->kind = kind;
	object->refs = 1;
	object->owner = owner;
	object->destroy = destroy;
	object->handle = object;
}

void
gs_object_publish(struct gs_object *object)
{
	pthread_mutex_lock(&lock);
	HASH_ADD_PTR(live, handle, object);
	pthread_mutex_unlock(&lock);
}

static struct gs_object *
find(const void *handle, enum gs_kind kind)
{
	struct gs_object *object;

	HASH_FIND_PTR(live, &handle, object);
	return object && object->kind == kind ? object : NULL;
}

void *
gs_object_get(const void *handle, enum gs_kind kind)
{
	struct gs_object *object;

	pthread_mutex_lock(&lock);
	object = find(handle, kind);
	if (object && !gs_object_try_ref(object))
		object = NULL;
	pthread_mutex_unlock(&lock);
	return object;
}

bool
gs_object_retire(const void *handle, enum gs_kind kind)
{
	struct gs_object *object;

	pthread_mutex_lock(&lock);
	object = find(handle, kind);
	if (object)
		HASH_DEL(live, object);
	pthread_mutex_unlock(&lock);
	return object != NULL;
}

void *
gs_object_retire_any(enum gs_kind kind)
{
	struct gs_object *object, *next, *found = NULL;

	pthread_mutex_lock(&lock);
	HASH_ITER(hh, live, object, next)
	{
		if (object->kind == kind) {
			HASH_DEL(live, object);
			found = object;
			break;
		}
	}
	pthread_mutex_unlock(&lock);
	return found;
}

void
gs_object_ref(struct gs_object *object)
{
	__atomic_add_fetch(&counted(object)->refs, 1, __ATOMIC_RELAXED);
}

bool
gs_object_try_ref(struct gs_object *object)
{
	unsigned int *refs = &counted(object)->refs;
	unsigned int n = __atomic_load_n(refs, __ATOMIC_RELAXED);

	while (n && !__atomic_compare_exchange_n(refs, &n, n + 1, true, __ATOMIC_ACQUIRE,
						 __ATOMIC_RELAXED))
		;
	return n != 0;
}

void
gs_object_put(struct gs_object *object)
{
	object = counted(object);
	if (__atomic_sub_fetch(&object->refs, 1, __ATOMIC_ACQ_REL) == 0)
		object->destroy(object);
}
