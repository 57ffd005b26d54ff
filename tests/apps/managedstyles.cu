/* SPDX-License-Identifier: Apache-2.0 */
/* Small programs, each with another style of using managed memory. */
#include "app.h"

#include <algorithm>
#include <memory>
#include <new>
#include <queue>
#include <string>
#include <thread>
#include <utility>
#include <vector>

template <typename T>
static T *
managed(size_t count)
{
	T *memory = nullptr;

	CHECK(cudaMallocManaged(&memory, count * sizeof(T)));
	return memory;
}

/* Objects of derived classes are managed wherever they are created. */
struct managed_object {
	static void *operator new(size_t size)
	{
		return managed<char>(size);
	}
	static void operator delete(void *memory)
	{
		CHECK(cudaFree(memory));
	}
};

/* A structure with pointers that is never copied. */
struct text : managed_object {
	char *bytes;
	int length;

	explicit text(const std::string &from)
	    : bytes(managed<char>(from.size() + 1)), length((int)from.size())
	{
		memcpy(bytes, from.c_str(), from.size() + 1);
	}
	~text()
	{
		CHECK(cudaFree(bytes));
	}
};

struct person : managed_object {
	text *name, *town;
	person *friends[2];
	int letters;
};

static __global__ void
greet(person *one)
{
	one->letters = one->name->length;
	for (person *other : one->friends)
		one->letters += other ? other->name->length + other->town->length : 0;
	for (int i = 0; i < one->name->length; i++)
		one->name->bytes[i] -= 'a' - 'A';
}

static void
structs_with_pointers()
{
	person *first = new person, *second = new person;

	*first = {};
	*second = {};
	first->name = new text("ada");
	first->town = new text("london");
	second->name = new text("grace");
	second->town = new text("arlington");
	first->friends[1] = second;
	second->friends[0] = second->friends[1] = first;
	greet<<<1, 1>>>(first);
	greet<<<1, 1>>>(second);
	CHECK(cudaDeviceSynchronize());
	REQUIRE(first->letters == 3 + 5 + 9 && second->letters == 5 + 2 * (3 + 6));
	REQUIRE(std::string(first->name->bytes) == "ADA");
	REQUIRE(std::string(first->friends[1]->name->bytes) == "GRACE");
	for (person *one : { first, second }) {
		delete one->name;
		delete one->town;
		delete one;
	}
	printf("structs with pointers\n");
}

/* Nodes in one array, built by the host and searched by the device. */
struct node {
	node *less, *more;
	int key, found;
};

static __global__ void
search(node *root, const int *keys, int count, int *depths)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x, depth = 0;

	if (i >= count)
		return;
	for (node *at = root; at; at = keys[i] < at->key ? at->less : at->more, depth++) {
		if (at->key == keys[i]) {
			atomicAdd(&at->found, 1);
			depths[i] = depth;
			return;
		}
	}
	depths[i] = -1;
}

static void
binary_tree()
{
	const int count = 1000;
	node *nodes = managed<node>(count), *root = nodes;
	int *keys = managed<int>(2 * count), *depths = managed<int>(2 * count);

	for (int i = 0; i < count; i++) {
		node **link = &root;

		nodes[i] = { nullptr, nullptr, i * 7919 % 10007 * 2, 0 };
		while (i > 0 && *link)
			link = nodes[i].key < (*link)->key ? &(*link)->less : &(*link)->more;
		*link = &nodes[i];
		keys[2 * i] = nodes[i].key;
		keys[2 * i + 1] = nodes[i].key + 1;
	}
	search<<<8, 256>>>(root, keys, 2 * count, depths);
	CHECK(cudaDeviceSynchronize());
	for (int i = 0; i < count; i++)
		REQUIRE(depths[2 * i] >= 0 && depths[2 * i + 1] == -1 && nodes[i].found == 1);
	for (void *memory : { (void *)nodes, (void *)keys, (void *)depths })
		CHECK(cudaFree(memory));
	printf("binary tree\n");
}

/* Filled by the device, read by the host. */
struct slot {
	unsigned int key, value;
};

static __global__ void
insert(slot *table, unsigned int size, unsigned int from, unsigned int count)
{
	unsigned int i = blockIdx.x * blockDim.x + threadIdx.x, key = from + i + 1;

	if (i >= count)
		return;
	for (unsigned int at = key * 2654435761u % size;; at = (at + 1) % size) {
		if (atomicCAS(&table[at].key, 0, key) == 0) {
			table[at].value = key * key;
			return;
		}
	}
}

static unsigned int
look_up(const slot *table, unsigned int size, unsigned int key)
{
	for (unsigned int at = key * 2654435761u % size; table[at].key; at = (at + 1) % size) {
		if (table[at].key == key)
			return table[at].value;
	}
	return 0;
}

static void
hash_table()
{
	const unsigned int size = 8191, count = 1500;
	slot *table = managed<slot>(size);

	memset(table, 0, size * sizeof(slot));
	for (unsigned int turn = 0; turn < 3; turn++) {
		insert<<<(count + 127) / 128, 128>>>(table, size, turn * count, count);
		CHECK(cudaDeviceSynchronize());
		for (unsigned int key = 1; key <= 3 * count; key += 7)
			REQUIRE(look_up(table, size, key) ==
				(key <= (turn + 1) * count ? key * key : 0));
	}
	CHECK(cudaFree(table));
	printf("hash table\n");
}

/* A container of the standard library whose memory is managed. */
template <typename T> struct managed_allocator {
	using value_type = T;

	managed_allocator() = default;
	template <typename U> managed_allocator(const managed_allocator<U> &)
	{
	}
	T *allocate(size_t count)
	{
		return managed<T>(count);
	}
	void deallocate(T *memory, size_t)
	{
		CHECK(cudaFree(memory));
	}
	bool operator==(const managed_allocator &) const
	{
		return true;
	}
	bool operator!=(const managed_allocator &) const
	{
		return false;
	}
};

static __global__ void
add_index(long long *data, size_t count)
{
	for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count;
	     i += (size_t)gridDim.x * blockDim.x)
		data[i] += (long long)i;
}

static void
vector_with_an_allocator()
{
	std::vector<long long, managed_allocator<long long>> data;
	long long turn = 0;

	/* Its memory moves when it grows. */
	for (; data.size() < 40000; turn++) {
		data.resize(data.size() * 2 + 3, turn);
		add_index<<<2, 128>>>(data.data(), data.size());
		CHECK(cudaDeviceSynchronize());
	}
	REQUIRE(data[1] == turn && data[2] == 2 * turn);
	REQUIRE(data.back() == (long long)data.size() - 1 + turn - 1);
	std::reverse(data.begin(), data.end());
	add_index<<<2, 128>>>(data.data(), data.size());
	CHECK(cudaDeviceSynchronize());
	REQUIRE(data[0] == (long long)data.size() - 1 + turn - 1);
	printf("vector with an allocator\n");
}

/* Breadth-first search; the program reads a word after each level. */
static __global__ void
expand(const int *rows, const int *columns, int count, int *level, int now, int *more)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i >= count || level[i] != now)
		return;
	for (int k = rows[i]; k < rows[i + 1]; k++) {
		if (atomicCAS(&level[columns[k]], -1, now + 1) == -1)
			*more = 1;
	}
}

static std::vector<int>
get_levels(const int *rows, const int *columns, int count)
{
	std::vector<int> level(count, -1);
	std::queue<int> next;

	level[0] = 0;
	next.push(0);
	while (!next.empty()) {
		int at = next.front();

		next.pop();
		for (int k = rows[at]; k < rows[at + 1]; k++) {
			if (level[columns[k]] != -1)
				continue;
			level[columns[k]] = level[at] + 1;
			next.push(columns[k]);
		}
	}
	return level;
}

static void
graph_search()
{
	const int count = 3000, edges = 3 * count;
	int *rows = managed<int>(count + 1), *columns = managed<int>(edges),
	    *level = managed<int>(count), *more = managed<int>(1);
	std::vector<int> model;

	for (int i = 0; i < count; i++) {
		rows[i] = 3 * i;
		columns[3 * i] = (i + 1) % count;
		columns[3 * i + 1] = i * 31 % count;
		columns[3 * i + 2] = i / 2;
		level[i] = -1;
	}
	rows[count] = edges;
	model = get_levels(rows, columns, count);
	level[0] = 0;
	*more = 1;
	for (int now = 0; *more; now++) {
		*more = 0;
		expand<<<(count + 127) / 128, 128>>>(rows, columns, count, level, now, more);
		CHECK(cudaDeviceSynchronize());
	}
	REQUIRE(std::equal(model.begin(), model.end(), level));
	for (int *memory : { rows, columns, level, more })
		CHECK(cudaFree(memory));
	printf("graph search\n");
}

/* A matrix of rows, each of which is an allocation. */
static __global__ void
transpose(float **to, float *const *from, int size)
{
	for (int i = threadIdx.x; i < size * size; i += blockDim.x)
		to[i % size][i / size] = from[i / size][i % size];
}

static void
rows_of_a_matrix()
{
	const int size = 60;
	float **a = managed<float *>(size), **b = managed<float *>(size);

	for (int y = 0; y < size; y++) {
		a[y] = managed<float>(size);
		b[y] = managed<float>(size);
		for (int x = 0; x < size; x++)
			a[y][x] = (float)(y * size + x);
	}
	transpose<<<1, 128>>>(b, a, size);
	CHECK(cudaDeviceSynchronize());
	std::swap(a[0], b[0]);
	transpose<<<1, 128>>>(b, a, size);
	CHECK(cudaDeviceSynchronize());
	REQUIRE(b[3][0] == (float)(3 * size) && b[0][5] == (float)(5 * size));
	REQUIRE(b[0][0] == 0 && b[7][9] == (float)(9 * size + 7));
	for (int y = 0; y < size; y++) {
		CHECK(cudaFree(a[y]));
		CHECK(cudaFree(b[y]));
	}
	CHECK(cudaFree(a));
	CHECK(cudaFree(b));
	printf("rows of a matrix\n");
}

/* The device reverses a list; then both sides alternately insert at its front. */
struct link {
	link *next;
	int value;
};

static __global__ void
turn_around(link **head)
{
	link *turned = nullptr;

	for (link *at = *head, *next; at; at = next) {
		next = at->next;
		at->next = turned;
		turned = at;
	}
	*head = turned;
}

static __global__ void
put_in_front(link **head, link *one, int value)
{
	one->value = value;
	one->next = *head;
	*head = one;
}

static void
list_that_both_change()
{
	const int count = 200;
	link *links = managed<link>(count), **head = managed<link *>(1);
	int expected = 0;

	*head = nullptr;
	for (int i = 0; i < count; i++) {
		if (i % 10 == 9) {
			put_in_front<<<1, 1>>>(head, &links[i], i);
			CHECK(cudaDeviceSynchronize());
		} else {
			links[i] = { *head, i };
			*head = &links[i];
		}
	}
	turn_around<<<1, 1>>>(head);
	CHECK(cudaDeviceSynchronize());
	for (link *at = *head; at; at = at->next)
		REQUIRE(at->value == expected++);
	REQUIRE(expected == count);
	CHECK(cudaFree(links));
	CHECK(cudaFree(head));
	printf("list that both change\n");
}

static __global__ void
square(int *data, int count)
{
	for (int i = threadIdx.x; i < count; i += blockDim.x)
		data[i] *= data[i];
}

/* Threads, each with a stream and a slice that shares blocks with other slices. */
static void
slices_of_threads()
{
	const int number = 4, each = 9001;
	int *data = managed<int>(number * each);
	std::vector<std::thread> threads;

	for (int i = 0; i < number * each; i++)
		data[i] = i % 100;
	for (int t = 0; t < number; t++) {
		threads.emplace_back([=] {
			cudaStream_t stream;

			CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
			for (int turn = 0; turn < 2; turn++)
				square<<<1, 64, 0, stream>>>(data + t * each, each);
			CHECK(cudaStreamSynchronize(stream));
			CHECK(cudaStreamDestroy(stream));
		});
	}
	for (auto &thread : threads)
		thread.join();
	CHECK(cudaDeviceSynchronize());
	for (int i = 0; i < number * each; i++)
		REQUIRE(data[i] == (i % 100) * (i % 100) * (i % 100) * (i % 100));
	CHECK(cudaFree(data));
	printf("slices of threads\n");
}

static __global__ void
touch(unsigned char *data, size_t size, size_t step)
{
	for (size_t at = threadIdx.x * step; at < size; at += blockDim.x * step)
		data[at] += 1;
}

/* Much memory is allocated, and little of it is used. */
static void
sparse()
{
	const size_t size = (size_t)96 << 20, step = (size_t)3 << 20;
	unsigned char *data = managed<unsigned char>(size);

	for (size_t at = 0; at < size; at += 2 * step)
		data[at] = 10;
	for (int turn = 0; turn < 3; turn++)
		touch<<<1, 32>>>(data, size, step);
	CHECK(cudaDeviceSynchronize());
	for (size_t at = 0; at < size; at += 2 * step)
		REQUIRE(data[at] == 13 && data[at + step] == 3);
	CHECK(cudaFree(data));
	printf("sparse\n");
}

struct part {
	const int *values;
	int count;
};

static __global__ void
sum_parts(const part *parts, int count, int step, int *sum)
{
	for (int i = 0; i < count; i += step)
		for (int k = 0; k < parts[i].count; k++)
			*sum += parts[i].values[k];
}

/* A long array of structs, whose own arrays are pinned memory. */
static void
table_of_pinned_arrays()
{
	const int count = 150000, arrays = 10;
	part *parts = managed<part>(count);
	int *sum = managed<int>(1), *values[arrays];

	for (int i = 0; i < arrays; i++) {
		CHECK(cudaMallocHost(&values[i], 3 * sizeof(int)));
		for (int k = 0; k < 3; k++)
			values[i][k] = i + k;
	}
	for (int i = 0; i < count; i++)
		parts[i] = { values[i / (count / arrays)], 3 };
	*sum = 0;
	sum_parts<<<1, 1>>>(parts, count, count / arrays / 2, sum);
	CHECK(cudaDeviceSynchronize());
	REQUIRE(*sum == 2 * (3 * 45 + 30));
	for (int *one : values)
		CHECK(cudaFreeHost(one));
	CHECK(cudaFree(parts));
	CHECK(cudaFree(sum));
	printf("table of pinned arrays\n");
}

/* A solver: the device computes, the program decides whether to continue. */
static __global__ void
improve(double *x, double a, double *error)
{
	double next = 0.5 * (*x + a / *x);

	*error = next > *x ? next - *x : *x - next;
	*x = next;
}

static void
decided_here()
{
	struct state {
		double x, error;
	} *state = managed<struct state>(1);
	int steps = 0;

	*state = { 1000, 1 };
	for (; state->error > 1e-9; steps++) {
		improve<<<1, 1>>>(&state->x, 2, &state->error);
		CHECK(cudaDeviceSynchronize());
	}
	REQUIRE(steps > 5 && steps < 40 && state->x > 1.414213562 && state->x < 1.414213563);
	CHECK(cudaFree(state));
	printf("decided here\n");
}

int
main()
{
	structs_with_pointers();
	binary_tree();
	hash_table();
	vector_with_an_allocator();
	graph_search();
	rows_of_a_matrix();
	list_that_both_change();
	slices_of_threads();
	sparse();
	table_of_pinned_arrays();
	decided_here();
	return app_ok("managedstyles");
}
