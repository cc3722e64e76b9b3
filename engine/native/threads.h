/* A pool of threads that take the chunks of one job after the other. Does not know what a chunk is. */
#pragma once
#include <stdint.h>

enum { MAX_THREADS = 64 };

typedef struct Threads Threads;
typedef void (*Chunk)(void *context, int chunk, int thread);

/** Starts count - 1 threads: the caller of threads_run is the other one. Null without memory. Fewer may start. */
Threads *threads_open(int count);
/** Not during threads_run. */
void threads_close(Threads *pool);
int threads_count(const Threads *pool);
/** Calls `chunk` for 0 .. count-1, in any order and on any thread, and returns when all have returned. */
void threads_run(Threads *pool, int count, Chunk chunk, void *context);
