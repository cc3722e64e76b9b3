/*
 * A thread takes a chunk by compare-and-swap, and a job is over when all its chunks are done, whoever did them. So a
 * thread whose processor is taken away delays the others by the chunk it is in, and not by its whole share.
 */
#include "threads.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#ifdef _WIN32
#include <windows.h>
#else
#include <pthread.h>
#include <sched.h>
#endif
#if defined(__x86_64__)
#include <immintrin.h>
#define PAUSE() _mm_pause()
#elif defined(__aarch64__)
#define PAUSE() __asm__ volatile("isb")
#else
#define PAUSE() ((void)0)
#endif

/** Looks for the next job before a thread sleeps: 50 to 150 microseconds. Waking it takes about 50. */
enum { MAX_SPINS = 2000, SPINS_BEFORE_YIELD = 1000 };

#ifdef _WIN32
typedef HANDLE Thread;
typedef struct { SRWLOCK lock; CONDITION_VARIABLE changed; } Monitor;
#define MONITOR_INIT(m) (InitializeSRWLock(&(m)->lock), InitializeConditionVariable(&(m)->changed))
#define MONITOR_FREE(m) ((void)(m))
#define ENTER(m) AcquireSRWLockExclusive(&(m)->lock)
#define LEAVE(m) ReleaseSRWLockExclusive(&(m)->lock)
#define WAIT(m) SleepConditionVariableSRW(&(m)->changed, &(m)->lock, INFINITE, 0)
#define WAKE(m) WakeAllConditionVariable(&(m)->changed)
#define YIELD() SwitchToThread()
#else
typedef pthread_t Thread;
typedef struct { pthread_mutex_t lock; pthread_cond_t changed; } Monitor;
#define MONITOR_INIT(m) (pthread_mutex_init(&(m)->lock, 0), pthread_cond_init(&(m)->changed, 0))
#define MONITOR_FREE(m) (pthread_cond_destroy(&(m)->changed), pthread_mutex_destroy(&(m)->lock))
#define ENTER(m) pthread_mutex_lock(&(m)->lock)
#define LEAVE(m) pthread_mutex_unlock(&(m)->lock)
#define WAIT(m) pthread_cond_wait(&(m)->changed, &(m)->lock)
#define WAKE(m) pthread_cond_broadcast(&(m)->changed)
#define YIELD() sched_yield()
#endif

typedef struct { Threads *pool; int index; } Start;

struct Threads {
  /** Number of the job in the upper half, chunks that nobody has taken in the lower half. */
  _Alignas(128) atomic_ullong next;
  _Alignas(128) atomic_int done;
  _Alignas(128) atomic_uint job;
  /** Of the job. Read behind taking a chunk only: before, the next job may be replacing them. */
  atomic_int count;
  _Atomic(Chunk) chunk;
  _Atomic(void *) context;
  _Alignas(128) atomic_int sleeping;
  atomic_int closing;
  Monitor monitor;
  int numThreads;
  Thread threads[MAX_THREADS];
  Start starts[MAX_THREADS];
};

static void take(Threads *pool, unsigned job, int thread) {
  unsigned long long next = atomic_load_explicit(&pool->next, memory_order_acquire);
  while ((unsigned)(next >> 32) == job && (unsigned)next > 0) {
    if (!atomic_compare_exchange_weak_explicit(&pool->next, &next, next - 1, memory_order_acq_rel,
                                               memory_order_acquire))
      continue;
    // Only now: the job cannot end before this chunk, so these are its own.
    const int count = atomic_load_explicit(&pool->count, memory_order_relaxed);
    const Chunk chunk = atomic_load_explicit(&pool->chunk, memory_order_relaxed);
    void *const context = atomic_load_explicit(&pool->context, memory_order_relaxed);
    chunk(context, count - (int)(unsigned)next, thread);
    atomic_fetch_add_explicit(&pool->done, 1, memory_order_acq_rel);
    next = atomic_load_explicit(&pool->next, memory_order_acquire);
  }
}

static void work(Threads *pool, int thread) {
  unsigned seen = 0;
  for (;;) {
    int spins = 0;
    unsigned job;
    while ((job = atomic_load_explicit(&pool->job, memory_order_acquire)) == seen) {
      if (atomic_load_explicit(&pool->closing, memory_order_relaxed)) return;
      PAUSE();
      if (++spins < MAX_SPINS) continue;
      ENTER(&pool->monitor);
      atomic_fetch_add(&pool->sleeping, 1);
      while (atomic_load(&pool->job) == seen && !atomic_load(&pool->closing)) WAIT(&pool->monitor);
      atomic_fetch_sub(&pool->sleeping, 1);
      LEAVE(&pool->monitor);
    }
    seen = job;
    take(pool, job, thread);
  }
}

#ifdef _WIN32
static DWORD WINAPI start(void *at) {
#else
static void *start(void *at) {
#endif
  const Start *s = at;
  work(s->pool, s->index);
  return 0;
}

Threads *threads_open(int count) {
  if (count < 1) count = 1;
  if (count > MAX_THREADS) count = MAX_THREADS;
#ifdef _WIN32
  Threads *pool = _aligned_malloc(sizeof *pool, 128);
#else
  Threads *pool = 0;
  if (posix_memalign((void **)&pool, 128, sizeof *pool)) return 0;
#endif
  if (!pool) return 0;
  memset(pool, 0, sizeof *pool);
  MONITOR_INIT(&pool->monitor);
  pool->numThreads = 1;
  for (int i = 1; i < count; i++) {
    pool->starts[i] = (Start){pool, i};
#ifdef _WIN32
    pool->threads[i] = CreateThread(0, 0, start, &pool->starts[i], 0, 0);
    if (!pool->threads[i]) break;
#else
    if (pthread_create(&pool->threads[i], 0, start, &pool->starts[i])) break;
#endif
    pool->numThreads++;
  }
  return pool;
}

void threads_close(Threads *pool) {
  if (!pool) return;
  ENTER(&pool->monitor);
  atomic_store(&pool->closing, 1);
  WAKE(&pool->monitor);
  LEAVE(&pool->monitor);
  for (int i = 1; i < pool->numThreads; i++) {
#ifdef _WIN32
    WaitForSingleObject(pool->threads[i], INFINITE);
    CloseHandle(pool->threads[i]);
#else
    pthread_join(pool->threads[i], 0);
#endif
  }
  MONITOR_FREE(&pool->monitor);
#ifdef _WIN32
  _aligned_free(pool);
#else
  free(pool);
#endif
}

int threads_count(const Threads *pool) { return pool->numThreads; }

void threads_run(Threads *pool, int count, Chunk chunk, void *context) {
  if (count == 1 || pool->numThreads == 1) {
    for (int i = 0; i < count; i++) chunk(context, i, 0);
    return;
  }
  const unsigned job = atomic_load_explicit(&pool->job, memory_order_relaxed) + 1;
  atomic_store_explicit(&pool->done, 0, memory_order_relaxed);
  atomic_store_explicit(&pool->count, count, memory_order_relaxed);
  atomic_store_explicit(&pool->chunk, chunk, memory_order_relaxed);
  atomic_store_explicit(&pool->context, context, memory_order_relaxed);
  atomic_store_explicit(&pool->next, (unsigned long long)job << 32 | (unsigned)count, memory_order_release);
  atomic_store(&pool->job, job);
  if (atomic_load(&pool->sleeping) > 0) {
    ENTER(&pool->monitor);
    WAKE(&pool->monitor);
    LEAVE(&pool->monitor);
  }
  take(pool, job, 0);
  for (int spins = 0; atomic_load_explicit(&pool->done, memory_order_acquire) < count;) {
    PAUSE();
    if (++spins % SPINS_BEFORE_YIELD == 0) YIELD();
  }
}
