/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wrongcalls [--ends FILE] [NAME...]: calls every function of the driver API (or the named ones)
 * with errors. Prints a line with the result of each call, so that two drivers can be compared line
 * by line.
 *
 * Cases: before cuInit(); without a current context; each argument wrong in turn (NULL, 0, a
 * destroyed object, an invalid value); from a thread without a context; with all arguments right;
 * and after this a valid call of another function.
 *
 * A call may crash, hang or break the context. Each function therefore has its own process; if a
 * call ends the process, the call is named, and a new process makes the other calls. The results of
 * another driver after such a call are the same only if its process is also replaced there: FILE
 * has a line "NAME, case" for each such call.
 */
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda.h>
#include <dlfcn.h>
#include <fstream>
#include <set>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

struct function {
	const char *name;
	const char *letters; /* one per parameter, see get_values() */
};

static const struct function functions[] = {
#include "wrongcalls_table.h"
};

#define ARGUMENTS_MAX 16
#define SECONDS 100
#define ENDED 69
#define CRASHED 70
#define LINES_MAX 100
#define TEXT_VALUE "nosuch"

static const char text[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
			   ".visible .entry nothing(.param .u64 unused) { ret; }\n";

typedef uintptr_t word;
typedef CUresult any_function(word, word, word, word, word, word, word, word, word, word, word,
			      word, word, word, word, word);

/* A value of an argument, and its name in the output. */
struct value {
	const char *name;
	word is;
};

static void *driver;
static unsigned int line, first;
static std::set<std::string> ends;
alignas(64) static unsigned char buffers[ARGUMENTS_MAX][1 << 16];

static struct {
	CUcontext context;
	CUstream stream, gone_stream;
	CUevent event, gone_event;
	CUmodule module;
	CUlibrary library;
	CUkernel kernel;
	CUfunction function;
	CUgraph graph;
	CUgraphNode node;
	CUgraphExec exec;
	CUarray array;
	CUmemoryPool pool;
	CUdeviceptr memory;
} made;

template <typename F>
static F *
find(const char *name)
{
	return reinterpret_cast<F *>(dlsym(driver, name));
}

/* Name in cuda.h: cuMemAlloc is cuMemAlloc_v2. */
#define TEXT(name) #name
#define CALL(name) (*find<decltype(name)>(TEXT(name)))

static void CUDA_CB
nothing(void *)
{
}

/* Signal handler: ends the process with a status from which the parent knows whether a call
 * crashed or timed out. */
static void
fatal(int number)
{
	_exit(CRASHED + (number == SIGALRM));
}

/* The first value is the valid one. */
static std::vector<value>
get_values(char letter, unsigned int i)
{
	memset(buffers[i], 0, sizeof(buffers[i]));
	switch (letter) {
	case 'S':
		return { { "stream", (word)made.stream }, { "gone", (word)made.gone_stream } };
	case 'E':
		return { { "event", (word)made.event },
			 { "NULL", 0 },
			 { "gone", (word)made.gone_event } };
	case 'C':
		return { { "context", (word)made.context }, { "NULL", 0 } };
	case 'M':
		return { { "module", (word)made.module }, { "NULL", 0 } };
	case 'L':
		return { { "library", (word)made.library }, { "NULL", 0 } };
	case 'K':
		return { { "kernel", (word)made.kernel }, { "NULL", 0 } };
	case 'F':
		return { { "function", (word)made.function }, { "NULL", 0 } };
	case 'G':
		return { { "graph", (word)made.graph }, { "NULL", 0 } };
	case 'N':
		return { { "node", (word)made.node }, { "NULL", 0 } };
	case 'X':
		return { { "exec", (word)made.exec }, { "NULL", 0 } };
	case 'A':
		return { { "array", (word)made.array }, { "NULL", 0 } };
	case 'P':
		return { { "pool", (word)made.pool }, { "NULL", 0 } };
	case 'Z':
		return { { "NULL", 0 } };
	case 'D':
		return { { "0", 0 }, { "99", 99 }, { "-1", (word)-1 } };
	case 'd':
		return { { "memory", (word)made.memory }, { "0", 0 }, { "16", 16 } };
	case 'u':
		return { { "memory", (word)made.memory }, { "0", 0 } };
	case 'f':
		return { { "function", (word)nothing }, { "NULL", 0 } };
	case 's':
		return { { "text", (word)TEXT_VALUE }, { "NULL", 0 } };
	case 'c':
		return { { "1", 1 }, { "0", 0 } };
	case 'e':
		return { { "0", 0 }, { "9999", 9999 } };
	case 'n':
		return { { "64", 64 }, { "0", 0 } };
	default:
		return { { "place", (word)buffers[i] }, { "NULL", 0 } };
	}
}

/* Makes a call and prints its result, unless an earlier process has already made it. */
static void
call(const struct function *function, const char *how, const word *a)
{
	any_function *f = find<any_function>(function->name);
	const char *name = "?";
	CUresult result;

	if (line++ < first)
		return;
	/* The parent reads it if the call ends the process. */
	printf("%s, %s: ", function->name, how);
	fflush(stdout);
	result = f(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12],
		   a[13], a[14], a[15]);
	(void)CALL(cuGetErrorName)(result, &name);
	printf("%s\n", name ? name : "no error of CUDA");
	fflush(stdout);
	if (ends.count(std::string(function->name) + ", " + how))
		_exit(ENDED);
}

static void
right_arguments(const struct function *function, word *arguments)
{
	memset(arguments, 0, ARGUMENTS_MAX * sizeof(*arguments));
	for (unsigned int i = 0; function->letters[i]; i++)
		arguments[i] = get_values(function->letters[i], i)[0].is;
}

static bool
set_up()
{
	CUDA_ARRAY_DESCRIPTOR shape = { 16, 16, CU_AD_FORMAT_UNSIGNED_INT8, 1 };

	return CALL(cuDevicePrimaryCtxRetain)(&made.context, 0) == CUDA_SUCCESS &&
	       CALL(cuCtxSetCurrent)(made.context) == CUDA_SUCCESS &&
	       CALL(cuStreamCreate)(&made.stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS &&
	       CALL(cuStreamCreate)(&made.gone_stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS &&
	       CALL(cuStreamDestroy)(made.gone_stream) == CUDA_SUCCESS &&
	       CALL(cuEventCreate)(&made.event, CU_EVENT_DEFAULT) == CUDA_SUCCESS &&
	       CALL(cuEventCreate)(&made.gone_event, CU_EVENT_DEFAULT) == CUDA_SUCCESS &&
	       CALL(cuEventDestroy)(made.gone_event) == CUDA_SUCCESS &&
	       CALL(cuModuleLoadData)(&made.module, text) == CUDA_SUCCESS &&
	       CALL(cuModuleGetFunction)(&made.function, made.module, "nothing") == CUDA_SUCCESS &&
	       CALL(cuLibraryLoadData)(&made.library, text, nullptr, nullptr, 0, nullptr, nullptr,
				       0) == CUDA_SUCCESS &&
	       CALL(cuLibraryGetKernel)(&made.kernel, made.library, "nothing") == CUDA_SUCCESS &&
	       CALL(cuGraphCreate)(&made.graph, 0) == CUDA_SUCCESS &&
	       CALL(cuGraphAddEmptyNode)(&made.node, made.graph, nullptr, 0) == CUDA_SUCCESS &&
	       CALL(cuGraphInstantiateWithFlags)(&made.exec, made.graph, 0) == CUDA_SUCCESS &&
	       CALL(cuArrayCreate)(&made.array, &shape) == CUDA_SUCCESS &&
	       CALL(cuDeviceGetDefaultMemPool)(&made.pool, 0) == CUDA_SUCCESS &&
	       CALL(cuMemAlloc)(&made.memory, 1 << 16) == CUDA_SUCCESS;
}

/* Tries all cases of one function. */
static int
try_function(const struct function *function)
{
	word arguments[ARGUMENTS_MAX];
	bool starts = strcmp(function->name, "cuInit") == 0;

	right_arguments(function, arguments);
	if (!starts)
		call(function, "before cuInit", arguments);
	if (CALL(cuInit)(0) != CUDA_SUCCESS)
		return 1;
	if (!starts)
		call(function, "without a context", arguments);
	if (!set_up())
		return 1;
	for (unsigned int i = 0; function->letters[i]; i++) {
		std::vector<value> values = get_values(function->letters[i], i);

		for (size_t v = 1; v < values.size(); v++) {
			std::string how =
				"argument " + std::to_string(i + 1) + " " + values[v].name;

			right_arguments(function, arguments);
			arguments[i] = values[v].is;
			call(function, how.c_str(), arguments);
		}
	}
	right_arguments(function, arguments);
	std::thread([&] { call(function, "in another thread", arguments); }).join();
	right_arguments(function, arguments);
	call(function, "right", arguments);
	if (line++ >= first) {
		const char *name = "?";

		(void)CALL(cuGetErrorName)(CALL(cuCtxSynchronize)(), &name);
		printf("%s, then cuCtxSynchronize: %s\n", function->name, name);
	}
	fflush(stdout);
	return 0;
}

/* Creates the file that functions read and write, in a folder of the test. */
static void
renew_file()
{
	std::ofstream(TEXT_VALUE) << "digraph {}\n";
}

/* Returns the number of lines that the child has written; the last one may be incomplete. */
static int
run_child(const struct function *function, unsigned int from, const char *ends_path,
	  unsigned int *lines)
{
	int pipes[2], status;
	char byte;
	pid_t child;

	fflush(stdout);
	renew_file();
	if (pipe(pipes))
		exit(1);
	child = fork();
	if (child == 0) {
		std::string number = std::to_string(from);

		(void)dup2(pipes[1], 1);
		(void)close(pipes[0]);
		(void)close(pipes[1]);
		execl("/proc/self/exe", "wrongcalls", "--one", function->name, number.c_str(),
		      ends_path, nullptr);
		_exit(1);
	}
	(void)close(pipes[1]);
	*lines = 0;
	while (read(pipes[0], &byte, 1) == 1) {
		putchar(byte);
		*lines += byte == '\n';
	}
	(void)close(pipes[0]);
	if (child < 0 || waitpid(child, &status, 0) != child)
		exit(1);
	return WIFEXITED(status) ? WEXITSTATUS(status) : CRASHED;
}

static int
run_all(int argc, char **argv)
{
	bool told = argc > 2 && strcmp(argv[1], "--ends") == 0;
	const char *ends_path = told ? argv[2] : "/dev/null";
	char folder[] = "/tmp/wrongcalls-XXXXXX";
	int names = told ? 3 : 1, failed = 0;

	if (!mkdtemp(folder) || chdir(folder))
		return 1;

	for (const struct function &function : functions) {
		unsigned int from = 0, lines;
		bool wanted = argc == names;
		int status;

		for (int i = names; i < argc; i++)
			wanted |= strcmp(argv[i], function.name) == 0;
		while (wanted && (status = run_child(&function, from, ends_path, &lines)) != 0) {
			if (status == ENDED) {
				from += lines;
				continue;
			}
			if (status < CRASHED) {
				printf("%s: cannot be tried\n", function.name);
				failed = 1;
				break;
			}
			printf("%s\n", status == CRASHED ? "crashed" : "did not return");
			from += lines + 1;
			/* A case that always ends the process, or too much time for all cases. */
			if (status != CRASHED || from > LINES_MAX)
				break;
		}
	}
	(void)unlink(TEXT_VALUE);
	(void)rmdir(folder);
	return failed;
}

static int
run_one(const char *name, const char *from, const char *ends_path)
{
	std::ifstream file(ends_path);

	for (std::string call; std::getline(file, call);)
		ends.insert(call);
	first = (unsigned int)atoi(from);
	for (int number : { SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGALRM })
		(void)signal(number, fatal);
	(void)alarm(SECONDS);
	for (const struct function &function : functions) {
		if (strcmp(function.name, name) != 0)
			continue;
		driver = dlopen("libcuda.so.1", RTLD_NOW);
		if (!driver || !dlsym(driver, name)) {
			printf("%s is not there\n", name);
			return 0;
		}
		/* The driver's cleanup at exit is not tested here. */
		int status = try_function(&function);
		fflush(stdout);
		_exit(status);
	}
	return 1;
}

int
main(int argc, char **argv)
{
	return argc == 5 && strcmp(argv[1], "--one") == 0 ? run_one(argv[2], argv[3], argv[4])
							  : run_all(argc, argv);
}
