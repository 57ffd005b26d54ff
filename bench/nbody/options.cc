/* SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace
{

const char help_text[] =
	"Usage: nbody [-benchmark] [-compare] [-cpu] [-fp64] [-numbodies=N] [-i=N] [-device=N]\n"
	"             [-blocksize=N] [-help]\n"
	"All-pairs gravitational n-body simulation, each iteration one kernel launch.\n"
	"\n"
	"  -benchmark      measure a number of iterations (what happens without -compare, too)\n"
	"  -compare        run the iterations on the device and on the CPU and compare; exit\n"
	"                  status 1 when they differ\n"
	"  -cpu            benchmark the CPU reference (double precision, one thread) instead\n"
	"  -fp64           double precision on the device\n"
	"  -numbodies=N    number of bodies (default: 1024 per multiprocessor, 4096 for -compare\n"
	"                  and -cpu)\n"
	"  -i=N            number of iterations (default: 10; 1 for -compare)\n"
	"  -device=N       which CUDA device (default: 0)\n"
	"  -blocksize=N    threads per block, a multiple of 32 up to 1024 (default: 256)\n"
	"  -help           this text\n"
	"\n"
	"Rates count 20 floating-point operations per interaction in either precision.\n";

[[noreturn]] void
fail(const std::string &what)
{
	fprintf(stderr, "nbody: %s; see nbody -help\n", what.c_str());
	exit(2);
}

int
number(const std::string &name, const char *text, long min, long max)
{
	char *end;

	errno = 0;
	long value = strtol(text, &end, 10);
	if (end == text || *end != '\0' || errno != 0 || value < min || value > max)
		fail("-" + name + " wants a number from " + std::to_string(min) + " to " +
		     std::to_string(max) + ", not '" + text + "'");
	return (int)value;
}

bool *
find_flag(options &opt, const std::string &name)
{
	const struct {
		const char *name;
		bool *flag;
	} flags[] = {
		{ "benchmark", &opt.benchmark },
		{ "compare", &opt.compare },
		{ "cpu", &opt.cpu },
		{ "fp64", &opt.fp64 },
	};

	for (const auto &entry : flags)
		if (name == entry.name)
			return entry.flag;
	return nullptr;
}

bool
set_number(options &opt, const std::string &name, const char *text)
{
	if (name == "numbodies" || name == "n")
		opt.bodies = number(name, text, 1, 16 << 20);
	else if (name == "i" || name == "iterations")
		opt.iterations = number(name, text, 1, 1000000000);
	else if (name == "device")
		opt.device = number(name, text, 0, 1023);
	else if (name == "blocksize")
		opt.block_size = number(name, text, 32, 1024);
	else
		return false;
	return true;
}

} /* namespace */

options
parse_options(int argc, char **argv)
{
	options opt;
	bool iterations_given = false;

	for (int i = 1; i < argc; i++) {
		const char *arg = argv[i];
		const char *start = arg + strspn(arg, "-");
		if (start == arg || start > arg + 2 || *start == '\0')
			fail(std::string("'") + arg + "' is no option");

		const char *equals = strchr(start, '=');
		std::string name = equals ? std::string(start, equals) : std::string(start);
		bool *flag = find_flag(opt, name);
		if (name == "help" || name == "h") {
			fputs(help_text, stdout);
			exit(0);
		} else if (flag) {
			if (equals)
				fail("-" + name + " takes no value");
			*flag = true;
		} else {
			const char *value = equals ? equals + 1 : i + 1 < argc ? argv[i + 1] : "";
			if (!set_number(opt, name, value))
				fail(std::string("unknown option '") + arg + "'");
			if (!equals)
				i++;
			iterations_given = iterations_given || name[0] == 'i';
		}
	}
	if (opt.block_size % 32 != 0)
		fail("-blocksize wants a multiple of 32");
	if (opt.compare && opt.cpu)
		fail("-compare and -cpu exclude each other");
	if (opt.compare && !iterations_given)
		opt.iterations = 1;
	if ((opt.compare || opt.cpu) && opt.bodies == 0)
		opt.bodies = 4096;
	return opt;
}
