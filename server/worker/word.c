/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/word.h"

#include "base/clock.h"
#include "base/thread.h"
#include "gpd_calls.h"
#include "server/worker/backlog.h"
#include "server/worker/device/device.h"
#include "server/worker/device/driver.h"
#include "server/worker/device/partition.h"
#include "server/worker/device/wait_page.h"
#include "server/worker/memory/host_memory.h"
#include "server/worker/memory/host_state.h"
#include "server/worker/memory/memory.h"
#include "server/worker/session/session.h"
#include "server/worker/session/sessions.h"
#include "server/worker/session/stream.h"
#include "server/worker/session/wait.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <utlist.h>

/* Words that one look may bring.  The page begins with the marker behind them. */
#define LOOK_WORDS 64
_Static_assert((LOOK_WORDS + 1) * sizeof(uint64_t) <= GPD_WAIT_PAGE_SLOTS * sizeof(uint32_t),
	       "a page has room for a look");
/* How long it looks without a pause. */
#define SPIN_NS 60000
#define COPY_NAP_NS 4000

struct word {
	struct word *prev, *next; /* by device */
	struct gpd_backlog_entry *entry;
	_Atomic bool reached; /* the stream's earlier work is done; the responder says so */
	uint32_t publish;   /* it is met, and over with gpHostPublish of this number; 0: not yet */
	unsigned int asked; /* where the look that is under way shows it; 0: nowhere */
	int device;
	unsigned int size, condition;
	uint64_t address, value;
};

struct gpd_words {
	struct word *all;  /* utlist */
	struct word *next; /* that the next look begins with; NULL: the first one */
	struct gpd_wait_page *page;
	uint32_t look;       /* the marker of the last look */
	bool looking;        /* it is under way */
	uint32_t publish;    /* the number that was asked for last */
	uint32_t published;  /* and that has come last */
	uint64_t changed_ns; /* when a wait began or was over */
	uint64_t look_at_ns; /* not before then */
};

/* Streams that nothing else is given to: a copy there waits for no kernel. */
static pthread_mutex_t streams_lock = PTHREAD_MUTEX_INITIALIZER;
static CUstream streams[GPD_DEVICES_MAX];

/* Makes the device current. */
static CUresult
stream_of(int device, CUstream *stream_p)
{
	CUresult result = gpd_device_enter(device);

	pthread_mutex_lock(&streams_lock);
	if (result == CUDA_SUCCESS && !streams[device])
		result = gpd_partition_stream(NULL, gpd_devices.all[device].priority_greatest, NULL,
					      &streams[device]);
	*stream_p = streams[device];
	pthread_mutex_unlock(&streams_lock);
	return result;
}

static struct gpd_words *
words_of(struct gpd_session *session)
{
	struct gpd_words *words = session->words;

	if (words)
		return words;
	words = calloc(1, sizeof(*words));
	if (!words)
		return NULL;
	words->page = gpd_wait_page_take();
	if (!words->page) {
		free(words);
		return NULL;
	}
	/* Its pauses are shorter than the 50 microseconds by which the kernel likes to be late. */
	(void)prctl(PR_SET_TIMERSLACK, 1000ul, 0, 0, 0);
	session->words = words;
	return words;
}

static int
by_device(const struct word *a, const struct word *b)
{
	return a->device - b->device;
}

/* By the responder. */
static void
reached(struct gpd_session *session, void *arg, CUresult result)
{
	struct word *word = arg;

	if (result == CUDA_SUCCESS)
		atomic_store_explicit(&word->reached, true, memory_order_release);
}

/* Whether the session may touch the word. */
static CUresult
check(struct gpd_session *session, uint64_t address, unsigned int size)
{
	return (size == 4 || size == 8) && address % size == 0 &&
			       gpd_memory_accessible(session, address, size)
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_INVALID_VALUE;
}

CUresult
gpd_gpStreamWrite(struct gpd_session *session, const struct gp_args_gpStreamWrite *args)
{
	struct gpd_stream *stream;
	CUresult result = check(session, args->address, args->size);

	if (result == CUDA_SUCCESS)
		result = gpd_stream_begin(session, args->stream, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	if (args->size == 8)
		return gpd_driver.cuStreamWriteValue64_v2(
			stream->driver, args->address, args->value, CU_STREAM_WRITE_VALUE_DEFAULT);
	return gpd_driver.cuStreamWriteValue32_v2(stream->driver, args->address,
						  (cuuint32_t)args->value,
						  CU_STREAM_WRITE_VALUE_DEFAULT);
}

/* It takes the record that is being carried out. */
static CUresult
put_in_stream(struct gpd_session *session, const struct gp_args_gpStreamWait *args)
{
	struct gpd_words *words = words_of(session);
	struct word *word = words ? calloc(1, sizeof(*word)) : NULL;
	struct gpd_stream *stream;
	CUresult result;

	if (!word)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = gpd_stream_begin(session, args->stream, &stream);
	if (result == CUDA_SUCCESS) {
		*word = (struct word){
			.entry = session->entry,
			.device = stream->device,
			.size = args->size,
			.condition = args->condition,
			.address = args->address,
			.value = args->value,
		};
		result = gpd_wait_add(session, stream, reached, word);
	}
	if (result != CUDA_SUCCESS) {
		free(word);
		return result;
	}
	session->entry = NULL;
	DL_INSERT_INORDER(words->all, word, by_device);
	words->changed_ns = gp_now_ns();
	words->look_at_ns = 0;
	return CUDA_SUCCESS;
}

CUresult
gpd_gpStreamWait(struct gpd_session *session, const struct gp_args_gpStreamWait *args)
{
	CUresult result = args->condition > CU_STREAM_WAIT_VALUE_NOR
				  ? CUDA_ERROR_INVALID_VALUE
				  : check(session, args->address, args->size);

	if (result == CUDA_SUCCESS)
		result = put_in_stream(session, args);
	/* Or the client would count on it for ever. */
	if (result != CUDA_SUCCESS)
		(void)gpd_session_send_waits(session, 1);
	return result;
}

CUresult
gpd_gpHostPublish(struct gpd_session *session, const struct gp_args_gpHostPublish *args)
{
	struct gpd_host_memory *memory = session->host_memory;

	if (args->number && session->words)
		session->words->published = args->number;
	else if (!args->number && memory)
		memory->publishes = true;
	return CUDA_SUCCESS;
}

bool
gpd_words_wait(const struct gpd_session *session)
{
	return session->words && session->words->all;
}

static struct word *
next_reached(struct word *word)
{
	while (word &&
	       (word->publish || !atomic_load_explicit(&word->reached, memory_order_acquire)))
		word = word->next;
	return word;
}

/* A word's place in the page, of which the first is the marker's. */
static void *
place_of(const struct gpd_words *words, unsigned int index)
{
	return (void *)((volatile uint64_t *)words->page->host + index);
}

/* Words of one device, as many as a look may bring, and behind them the marker. */
static CUresult
begin_look(struct gpd_words *words)
{
	struct word *word = next_reached(words->next ? words->next : words->all);
	int device = word ? word->device : 0;
	CUstream stream;
	CUresult result = word ? stream_of(device, &stream) : CUDA_ERROR_NOT_READY;
	unsigned int count = 0;

	while (word && word->device == device && count < LOOK_WORDS && result == CUDA_SUCCESS) {
		word->asked = ++count;
		result = gpd_driver.cuMemcpyDtoHAsync_v2(place_of(words, count), word->address,
							 word->size, stream);
		word = next_reached(word->next);
	}
	words->next = word;
	if (result == CUDA_SUCCESS)
		result = gpd_driver.cuStreamWriteValue32_v2(
			stream, words->page->device, ++words->look, CU_STREAM_WRITE_VALUE_DEFAULT);
	words->looking = result == CUDA_SUCCESS;
	return result;
}

static uint64_t
read_word(const struct gpd_words *words, const struct word *word)
{
	const volatile void *at = place_of(words, word->asked);

	return word->size == 8 ? *(const volatile uint64_t *)at : *(const volatile uint32_t *)at;
}

static bool
is_met(const struct word *word, uint64_t now)
{
	const uint64_t mask = word->size == 8 ? UINT64_MAX : UINT32_MAX;
	const uint64_t value = word->value & mask;

	switch (word->condition) {
	case CU_STREAM_WAIT_VALUE_EQ:
		return now == value;
	case CU_STREAM_WAIT_VALUE_AND:
		return (now & value) != 0;
	case CU_STREAM_WAIT_VALUE_NOR:
		return (~(now | value) & mask) != 0;
	default: /* GEQ, of numbers that wrap around */
		return ((now - value) & mask) <= mask / 2;
	}
}

static void
remove_word(struct gpd_session *session, struct word *word)
{
	struct gpd_words *words = session->words;

	if (words->next == word)
		words->next = word->next;
	DL_DELETE(words->all, word);
	gpd_backlog_remove(session, word->entry);
	free(word);
}

/* Whether the client's program may have written the word behind data that has not come. */
static bool
is_published(const struct gpd_session *session, const struct word *word)
{
	const struct gpd_host_memory *memory = session->host_memory;

	return memory && memory->publishes &&
	       gpd_host_memory_mapped(session, word->address, word->size);
}

/* The next number; 0 names none. */
static uint32_t
next_number(uint32_t number)
{
	return number == UINT32_MAX ? 1 : number + 1;
}

/* Those that are met, and whose data has come. */
static unsigned int
end_published(struct gpd_session *session)
{
	struct gpd_words *words = session->words;
	struct word *word, *next;
	unsigned int count = 0;

	DL_FOREACH_SAFE(words->all, word, next)
	{
		/* A later number covers the earlier ones. */
		if (word->publish && (int32_t)(words->published - word->publish) >= 0) {
			remove_word(session, word);
			count++;
		}
	}
	words->published = 0;
	return count;
}

static unsigned int
end_look(struct gpd_session *session)
{
	struct gpd_words *words = session->words;
	uint32_t number = next_number(words->publish);
	struct word *word, *next;
	unsigned int count = 0;
	bool publish = false;

	words->looking = false;
	DL_FOREACH_SAFE(words->all, word, next)
	{
		bool met = word->asked && is_met(word, read_word(words, word));

		if (met && is_published(session, word)) {
			word->publish = number;
			word->asked = 0;
			publish = true;
		} else if (met) {
			remove_word(session, word);
			count++;
		} else {
			word->asked = 0;
		}
	}
	if (publish) {
		words->publish = number;
		words->changed_ns = gp_now_ns();
		(void)gpd_session_send_publish(session, number);
	}
	return count;
}

/* How long to wait before the next look. */
static uint64_t
pause_after(const struct gpd_words *words, uint64_t now)
{
	uint64_t waited = now - words->changed_ns;

	return waited < SPIN_NS || words->next ? 0 : gpd_sessions_nap_ns(waited);
}

unsigned int
gpd_words_look(struct gpd_session *session)
{
	struct gpd_words *words = session->words;
	unsigned int count = 0;
	uint64_t now = gp_now_ns();
	CUresult result;

	if (words->published)
		count = end_published(session);
	if (words->looking &&
	    __atomic_load_n(&words->page->host[0], __ATOMIC_ACQUIRE) == words->look) {
		count += end_look(session);
		if (count)
			words->changed_ns = now;
		words->look_at_ns = now + pause_after(words, now);
	}
	if (!words->looking && now >= words->look_at_ns && words->all) {
		result = begin_look(words);
		if (gpd_driver_is_sticky(result))
			gpd_session_poison(session, result);
		if (result != CUDA_SUCCESS)
			words->look_at_ns = now + COPY_NAP_NS + pause_after(words, now);
	}
	if (count)
		(void)gpd_session_send_waits(session, count);
	return count;
}

void
gpd_words_pause(struct gpd_session *session)
{
	const struct gpd_words *words = session->words;
	uint64_t now = gp_now_ns();

	if (words->looking && now - words->changed_ns < SPIN_NS && gpd_sessions_may_spin())
		gp_pause();
	else if (words->looking)
		gp_nap(COPY_NAP_NS);
	else if (now < words->look_at_ns)
		gp_nap(words->look_at_ns - now);
}

void
gpd_words_forget(struct gpd_session *session)
{
	struct gpd_words *words = session->words;
	struct word *word, *next;

	if (!words)
		return;
	/* Its page goes to another session. */
	while (words->looking && !atomic_load(&gpd_devices.lost) &&
	       __atomic_load_n(&words->page->host[0], __ATOMIC_ACQUIRE) != words->look)
		gp_nap(COPY_NAP_NS);
	gpd_wait_page_give(words->page);
	DL_FOREACH_SAFE(words->all, word, next)
	{
		free(word);
	}
	free(words);
	session->words = NULL;
}
