/*
 * Many small jobs on several pools of threads: each chunk runs exactly once, and what it wrote is seen when the job is
 * over. For the sanitizer for threads. Pauses let the threads fall asleep in between.
 */
#include "../threads.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MAX_CHUNKS = 40 };

typedef struct {
  int number;
  /** Not atomic: a chunk that ran twice, or a result that is read too early, is a race. */
  int results[MAX_CHUNKS];
  int byThread[MAX_THREADS];
} Job;

static void work(void *context, int chunk, int thread) {
  Job *job = context;
  job->results[chunk] += job->number + chunk;
  job->byThread[thread]++;
}

int main(int argc, char **argv) {
  const int numJobs = argc > 1 ? atoi(argv[1]) : 100000;
  unsigned state = 1;
  long chunks = 0, onOthers = 0;
  for (int round = 0; round < 5; round++) {
    Threads *pool = threads_open(round + 2);
    for (int i = 0; i < numJobs / 5; i++) {
      state = state * 1664525u + 1013904223u;
      const int count = (int)(state >> 16) % (MAX_CHUNKS + 1);
      if ((state >> 8) % 500 == 0) usleep(300);
      Job job = {.number = i};
      threads_run(pool, count, work, &job);
      int sum = 0;
      for (int c = 0; c < MAX_CHUNKS; c++)
        if (job.results[c] != (c < count ? i + c : 0)) {
          printf("job %d of %d threads: chunk %d gave %d\n", i, round + 2, c, job.results[c]);
          return 1;
        }
      for (int t = 0; t < MAX_THREADS; t++) sum += job.byThread[t];
      if (sum != count) {
        printf("job %d of %d threads: %d of %d chunks\n", i, round + 2, sum, count);
        return 1;
      }
      chunks += count;
      onOthers += count - job.byThread[0];
    }
    threads_close(pool);
  }
  printf("%d jobs, %ld chunks, %ld of them not on the first thread\n", numJobs, chunks, onOthers);
  return onOthers > 0 ? 0 : 1;
}
