/* SPDX-License-Identifier: Apache-2.0 */
/* Extensive test of host functions and stream callbacks: callbacks [TEST [NUMBER]]. Without
 * arguments it runs the tests whose results are the same on any driver. */
#include "app.h"

#include <atomic>
#include <chrono>
#include <setjmp.h>
#include <stdexcept>
#include <stdlib.h>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

typedef std::chrono::steady_clock steady;

static __global__ void
add_one(int *cell)
{
	*cell += 1;
}

static __global__ void
fault(int *cell)
{
	*(volatile int *)8 = *cell;
}

static double
ms_since(steady::time_point begin)
{
	return std::chrono::duration<double, std::milli>(steady::now() - begin).count();
}

static void
sleep_ms(int ms)
{
	std::this_thread::sleep_for(std::chrono::milliseconds(ms));
}

/* A host function that waits until the program releases it. */
struct gate {
	std::atomic<bool> inside{ false }, open{ false }, left{ false };
};

static void CUDART_CB
pass_gate(void *data)
{
	gate *g = (gate *)data;

	g->inside = true;
	while (!g->open)
		sleep_ms(1);
	g->left = true;
}

static void
wait_inside(gate *g)
{
	while (!g->inside)
		sleep_ms(1);
}

static cudaStream_t
make_stream(unsigned int flags = cudaStreamNonBlocking)
{
	cudaStream_t stream;

	CHECK(cudaStreamCreateWithFlags(&stream, flags));
	return stream;
}

/* The functions of one stream, each of which must find its number. */
struct line {
	cudaStream_t stream;
	int *cell, *pinned;
	int next = 0, wrong = 0;
};

static void CUDART_CB
in_order(void *data)
{
	line *l = (line *)data;

	l->next++;
	l->wrong += *l->pinned != l->next;
}

static void CUDART_CB
in_order_too(cudaStream_t stream, cudaError_t status, void *data)
{
	line *l = (line *)data;

	l->wrong += stream != l->stream || status != cudaSuccess;
	in_order(data);
}

/* Repeats kernel, copy, function on several streams at once. */
static void
order(int count)
{
	const int streams = 4;
	line lines[streams];

	for (line &l : lines) {
		l.stream = make_stream(&l - lines < 2 ? cudaStreamDefault : cudaStreamNonBlocking);
		l.cell = app_malloc<int>(1);
		CHECK(cudaMemset(l.cell, 0, sizeof(int)));
		CHECK(cudaDeviceSynchronize());
		CHECK(cudaMallocHost(&l.pinned, sizeof(int)));
	}
	CHECK(cudaDeviceSynchronize());
	for (int i = 0; i < count; i++) {
		line &l = lines[i % streams];

		add_one<<<1, 1, 0, l.stream>>>(l.cell);
		CHECK(cudaMemcpyAsync(l.pinned, l.cell, sizeof(int), cudaMemcpyDeviceToHost,
				      l.stream));
		if (i % 3)
			CHECK(cudaLaunchHostFunc(l.stream, in_order, &l));
		else
			CHECK(cudaStreamAddCallback(l.stream, in_order_too, &l, 0));
	}
	CHECK(cudaDeviceSynchronize());
	for (line &l : lines) {
		REQUIRE(l.next == count / streams && l.wrong == 0);
		CHECK(cudaStreamDestroy(l.stream));
		CHECK(cudaFree(l.cell));
		CHECK(cudaFreeHost(l.pinned));
	}
}

/* Work for which an unreturned function counts as unfinished, and work for which it does not. */
static void
unfinished()
{
	cudaStream_t stream = make_stream(), other = make_stream(), blocking = make_stream(0);
	cudaEvent_t before, after;
	int *cell = app_malloc<int>(1);
	gate g;

	CHECK(cudaEventCreate(&before));
	CHECK(cudaEventCreate(&after));
	CHECK(cudaMemset(cell, 0, sizeof(int)));
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaEventRecord(before, stream));
	CHECK(cudaLaunchHostFunc(stream, pass_gate, &g));
	CHECK(cudaEventRecord(after, stream));
	wait_inside(&g);
	CHECK(cudaEventSynchronize(before));
	EXPECT(cudaErrorNotReady, cudaStreamQuery(stream));
	EXPECT(cudaErrorNotReady, cudaEventQuery(after));
	/* Other streams continue: non-blocking ones, blocking ones, the legacy stream. */
	for (cudaStream_t s : { other, blocking, (cudaStream_t)0 }) {
		add_one<<<1, 1, 0, s>>>(cell);
		CHECK(cudaStreamSynchronize(s));
		CHECK(cudaStreamQuery(s));
	}
	EXPECT(cudaErrorNotReady, cudaStreamQuery(stream));
	CHECK(cudaStreamWaitEvent(other, after, 0));
	add_one<<<1, 1, 0, other>>>(cell);
	EXPECT(cudaErrorNotReady, cudaStreamQuery(other));
	REQUIRE(!g.left);
	std::thread opener([&g] {
		sleep_ms(30);
		g.open = true;
	});
	CHECK(cudaStreamSynchronize(other));
	REQUIRE(g.left);
	opener.join();
	CHECK(cudaEventQuery(after));
	float ms;
	CHECK(cudaEventElapsedTime(&ms, before, after));
	REQUIRE(app_download(cell, 1)[0] == 4);
	for (cudaStream_t s : { stream, other, blocking })
		CHECK(cudaStreamDestroy(s));
	CHECK(cudaEventDestroy(before));
	CHECK(cudaEventDestroy(after));
	CHECK(cudaFree(cell));
}

/* The legacy stream and the blocking streams wait for each other's functions. */
static void
legacy()
{
	cudaStream_t blocking = make_stream(0), free_one = make_stream();
	int *cell = app_malloc<int>(1);
	gate first, second;

	CHECK(cudaMemset(cell, 0, sizeof(int)));
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaLaunchHostFunc(blocking, pass_gate, &first));
	add_one<<<1, 1>>>(cell);
	wait_inside(&first);
	EXPECT(cudaErrorNotReady, cudaStreamQuery(0));
	CHECK(cudaStreamQuery(free_one));
	first.open = true;
	CHECK(cudaStreamSynchronize(0));
	REQUIRE(first.left);

	CHECK(cudaLaunchHostFunc(0, pass_gate, &second));
	add_one<<<1, 1, 0, blocking>>>(cell);
	add_one<<<1, 1, 0, free_one>>>(cell);
	CHECK(cudaStreamSynchronize(free_one));
	wait_inside(&second);
	EXPECT(cudaErrorNotReady, cudaStreamQuery(blocking));
	second.open = true;
	/* A synchronous copy runs after it. */
	REQUIRE(app_download(cell, 1)[0] == 3 && second.left);
	CHECK(cudaStreamDestroy(blocking));
	CHECK(cudaStreamDestroy(free_one));
	CHECK(cudaFree(cell));
}

struct fill {
	int *memory;
	int value;
	bool ran;
};

static void CUDART_CB
fill_in(void *data)
{
	fill *f = (fill *)data;

	sleep_ms(20);
	f->ran = true;
	if (f->memory)
		*f->memory = f->value;
}

/* A function may produce the data of the next copy; a synchronous copy waits for it. */
static void
source()
{
	cudaStream_t stream = make_stream();
	int *cell = app_malloc<int>(1), *pinned, seven = 7;

	CHECK(cudaMallocHost(&pinned, sizeof(int)));
	for (int i = 1; i <= 3; i++) {
		fill f = { pinned, i * 100, false };

		CHECK(cudaLaunchHostFunc(stream, fill_in, &f));
		CHECK(cudaMemcpyAsync(cell, pinned, sizeof(int), cudaMemcpyHostToDevice, stream));
		CHECK(cudaStreamSynchronize(stream));
		REQUIRE(app_download(cell, 1)[0] == i * 100);
	}
	fill f = { nullptr, 0, false };
	CHECK(cudaLaunchHostFunc(0, fill_in, &f));
	CHECK(cudaMemcpy(cell, &seven, sizeof(int), cudaMemcpyHostToDevice));
	REQUIRE(f.ran);
	CHECK(cudaFreeHost(pinned));
	CHECK(cudaFree(cell));
	CHECK(cudaStreamDestroy(stream));
}

static void CUDART_CB
call_cuda(void *data)
{
	int **place = (int **)data;

	EXPECT(cudaErrorNotPermitted, cudaMalloc(place, 4));
	EXPECT(cudaErrorNotPermitted, cudaDeviceSynchronize());
}

static void
inside()
{
	int *place = nullptr;
	cudaStream_t stream = make_stream();

	EXPECT(cudaErrorInvalidValue, cudaLaunchHostFunc(stream, nullptr, nullptr));
	EXPECT(cudaErrorInvalidValue, cudaStreamAddCallback(stream, in_order_too, nullptr, 1));
	CHECK(cudaLaunchHostFunc(stream, call_cuda, &place));
	CHECK(cudaStreamSynchronize(stream));
	REQUIRE(place == nullptr);
	CHECK(cudaStreamDestroy(stream));
}

/* The functions of a destroyed stream still run, even if its handle is reused. */
static void
destroyed()
{
	int *cell = app_malloc<int>(1);
	gate gates[5];

	CHECK(cudaMemset(cell, 0, sizeof(int)));
	CHECK(cudaDeviceSynchronize());
	for (gate &g : gates) {
		cudaStream_t stream = make_stream();
		cudaEvent_t event;

		CHECK(cudaEventCreate(&event));
		add_one<<<1, 1, 0, stream>>>(cell);
		CHECK(cudaLaunchHostFunc(stream, pass_gate, &g));
		CHECK(cudaEventRecord(event, stream));
		CHECK(cudaStreamWaitEvent(stream, event, 0));
		CHECK(cudaEventDestroy(event));
		CHECK(cudaStreamDestroy(stream));
	}
	for (gate &g : gates)
		g.open = true;
	CHECK(cudaDeviceSynchronize());
	for (gate &g : gates)
		REQUIRE(g.left);
	REQUIRE(app_download(cell, 1)[0] == 5);
	CHECK(cudaFree(cell));
}

static std::atomic<int> called, not_called;
static std::atomic<cudaError_t> told;

static void CUDART_CB
count_call(void *)
{
	not_called++;
}

static void CUDART_CB
count_error(cudaStream_t, cudaError_t status, void *)
{
	told = status;
	called++;
}

/* After cudaDeviceReset() the functions of the old context still run before the work of the new
 * one. */
static void
reset()
{
	cudaStream_t stream = make_stream();
	gate g;

	CHECK(cudaLaunchHostFunc(stream, pass_gate, &g));
	CHECK(cudaLaunchHostFunc(stream, count_call, nullptr));
	wait_inside(&g);
	std::thread opener([&g] {
		sleep_ms(100);
		g.open = true;
	});
	CHECK(cudaDeviceReset());
	int *cell = app_malloc<int>(1);
	CHECK(cudaMemset(cell, 0, sizeof(int)));
	CHECK(cudaDeviceSynchronize());
	add_one<<<1, 1>>>(cell);
	REQUIRE(app_download(cell, 1)[0] == 1 && g.left && not_called == 1);
	opener.join();
}

/* More work than may be queued after a function is sent later, and arrives. */
static void
flood(int mib)
{
	cudaStream_t stream = make_stream();
	std::vector<char> host((size_t)mib << 20);
	char *device = app_malloc<char>(host.size());
	fill f = { nullptr, 0, false };

	for (size_t i = 0; i < host.size(); i += 4096)
		host[i] = (char)(i >> 12);
	CHECK(cudaLaunchHostFunc(stream, fill_in, &f));
	CHECK(cudaMemcpyAsync(device, host.data(), host.size(), cudaMemcpyHostToDevice, stream));
	CHECK(cudaStreamSynchronize(stream));
	REQUIRE(f.ran && app_download(device, host.size()) == host);
	CHECK(cudaFree(device));
	CHECK(cudaStreamDestroy(stream));
}

/* Prints that a function sleeps, and the duration of the slowest round of other streams during this
 * time. */
static void
sleeper(int ms)
{
	cudaStream_t stream = make_stream(), other = make_stream();
	int *cell = app_malloc<int>(1);
	double worst = 0;
	gate g;

	add_one<<<1, 1, 0, other>>>(cell);
	CHECK(cudaStreamSynchronize(other));
	CHECK(cudaLaunchHostFunc(stream, pass_gate, &g));
	wait_inside(&g);
	printf("inside\n");
	fflush(stdout);
	for (steady::time_point begin = steady::now(); ms_since(begin) < ms;) {
		steady::time_point round = steady::now();

		add_one<<<1, 1, 0, other>>>(cell);
		CHECK(cudaStreamSynchronize(other));
		if (ms_since(round) > worst)
			worst = ms_since(round);
		sleep_ms(1);
	}
	g.open = true;
	CHECK(cudaDeviceSynchronize());
	printf("own worst %.1f ms\n", worst);
}

/* Prints the duration of the slowest of many short rounds. */
static void
beat(int ms)
{
	int *cell = app_malloc<int>(1);
	double worst = 0;
	int rounds = 0;

	add_one<<<1, 1>>>(cell);
	CHECK(cudaDeviceSynchronize());
	printf("beating\n");
	fflush(stdout);
	for (steady::time_point begin = steady::now(); ms_since(begin) < ms; rounds++) {
		steady::time_point round = steady::now();

		add_one<<<1, 1>>>(cell);
		CHECK(cudaDeviceSynchronize());
		if (ms_since(round) > worst)
			worst = ms_since(round);
		sleep_ms(1);
	}
	printf("worst %.1f ms in %d rounds\n", worst, rounds);
}

/* After a kernel that faults, functions are not called, and callbacks receive the error. */
static void
after_error()
{
	cudaStream_t stream = make_stream();
	int *cell = app_malloc<int>(1);
	gate g;

	CHECK(cudaLaunchHostFunc(stream, pass_gate, &g));
	fault<<<1, 1, 0, stream>>>(cell);
	CHECK(cudaLaunchHostFunc(stream, count_call, nullptr));
	CHECK(cudaStreamAddCallback(stream, count_error, nullptr, 0));
	g.open = true;
	cudaError_t error = cudaStreamSynchronize(stream);
	REQUIRE(error == cudaErrorIllegalAddress);
	for (int i = 0; i < 2000 && called == 0; i++)
		sleep_ms(1);
	REQUIRE(called == 1 && not_called == 0 && told == cudaErrorIllegalAddress);
	REQUIRE(cudaLaunchHostFunc(stream, count_call, nullptr) == cudaErrorIllegalAddress);
}

static void CUDART_CB
for_ever(void *)
{
	printf("inside\n");
	fflush(stdout);
	for (;;)
		pause();
}

/* The program is killed, or exits, while a function runs and more are queued. */
static void
endless(bool returns)
{
	cudaStream_t stream = make_stream();
	int *cell = app_malloc<int>(1);

	CHECK(cudaLaunchHostFunc(stream, for_ever, nullptr));
	for (int i = 0; i < 100; i++) {
		add_one<<<1, 1, 0, stream>>>(cell);
		CHECK(cudaLaunchHostFunc(stream, count_call, nullptr));
	}
	if (!returns)
		CHECK(cudaDeviceSynchronize());
	sleep_ms(200);
}

/* A child process has none of its parent's functions. */
static void
forked()
{
	cudaStream_t stream = make_stream();
	gate g;

	CHECK(cudaLaunchHostFunc(stream, pass_gate, &g));
	CHECK(cudaStreamAddCallback(stream, count_error, nullptr, 0));
	wait_inside(&g);
	pid_t child = fork();
	REQUIRE(child >= 0);
	if (child == 0) {
		g.open = true;
		sleep_ms(100);
		_exit(g.left || called ? 1 : 0);
	}
	int status;
	REQUIRE(waitpid(child, &status, 0) == child && status == 0);
	g.open = true;
	CHECK(cudaStreamSynchronize(stream));
	REQUIRE(g.left && called == 1 && told == cudaSuccess);
}

static jmp_buf before;

static void CUDART_CB
leave(void *data)
{
	if (data)
		longjmp(before, 1);
	throw std::runtime_error("a function that throws");
}

/* A function leaves by an exception, or by longjmp() to another thread's stack. This is undefined,
 * and may end only this program. */
static void
leaves(bool jumps)
{
	cudaStream_t stream = make_stream();

	if (setjmp(before))
		abort();
	CHECK(cudaLaunchHostFunc(stream, leave, jumps ? &before : nullptr));
	CHECK(cudaMemsetAsync(app_malloc<int>(1), 0, 4, stream));
	CHECK(cudaStreamSynchronize(stream));
}

int
main(int count, char **arguments)
{
	std::string what = count > 1 ? arguments[1] : "";
	int number = count > 2 ? atoi(arguments[2]) : 0;

	if (what.empty()) {
		order(400);
		unfinished();
		legacy();
		source();
	} else if (what == "inside") {
		inside();
	} else if (what == "destroyed") {
		destroyed();
	} else if (what == "reset") {
		reset();
	} else if (what == "flood") {
		flood(number);
	} else if (what == "order") {
		order(number);
	} else if (what == "sleeper") {
		sleeper(number);
	} else if (what == "beat") {
		beat(number);
	} else if (what == "error") {
		after_error();
	} else if (what == "killed" || what == "exit") {
		endless(what == "exit");
	} else if (what == "throws" || what == "jumps") {
		leaves(what == "jumps");
	} else if (what == "fork") {
		forked();
	} else {
		return 2;
	}
	return app_ok("callbacks");
}
