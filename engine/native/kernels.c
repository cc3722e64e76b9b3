/* Chooses the kernels for the processor, and owns the buffers of steps. */
#include <stdlib.h>
#include <string.h>
#include "step.h"

extern const Kernels kernels_plain;
#if defined(__x86_64__)
extern const Kernels kernels_avx2, kernels_avxvnni, kernels_avx512vnni;
static const Kernels *const ALL[] = {&kernels_avx512vnni, &kernels_avxvnni, &kernels_avx2, &kernels_plain};
#elif defined(__aarch64__)
extern const Kernels kernels_dotprod;
static const Kernels *const ALL[] = {&kernels_dotprod, &kernels_plain};
#endif

int kernels_run_on(const Kernels *kernels, const Features *f) {
  const Features *n = &kernels->needs;
  return !(n->leaf1c & ~f->leaf1c) && !(n->leaf7b & ~f->leaf7b) && !(n->leaf7c & ~f->leaf7c) &&
         !(n->leaf71a & ~f->leaf71a) && !(n->extendedC & ~f->extendedC) && !(n->dotProduct & ~f->dotProduct);
}

const Kernels *kernels_named(const char *name) {
  const Features features = processor_features();
  for (size_t i = 0; i < sizeof ALL / sizeof *ALL; i++)
    if (!strcmp(ALL[i]->name, name)) return kernels_run_on(ALL[i], &features) ? ALL[i] : 0;
  return 0;
}

struct Workspace {
  int count;
  struct {
    void *data, *base;
    size_t size;
  } buffers[];
};

enum { SHARED_BUFFERS = 24 };

Workspace *workspace_open(int numThreads) {
  const int count = SHARED_BUFFERS + numThreads;
  Workspace *space = calloc(1, sizeof *space + count * sizeof space->buffers[0]);
  if (space) space->count = count;
  return space;
}

void workspace_close(Workspace *space) {
  if (!space) return;
  for (int i = 0; i < space->count; i++) free(space->buffers[i].base);
  free(space);
}

void *workspace_get(Workspace *space, int slot, size_t size) {
  if (slot >= space->count) return 0;
  if (space->buffers[slot].size >= size && space->buffers[slot].base) return space->buffers[slot].data;
  free(space->buffers[slot].base);
  // 64 bytes more on both sides: vectors may begin anywhere, and whole vectors are read at the end.
  char *base = calloc(1, size + 128);
  space->buffers[slot].base = base;
  space->buffers[slot].size = base ? size : 0;
  space->buffers[slot].data = base ? (void *)(((uintptr_t)base + 63) / 64 * 64) : 0;
  return space->buffers[slot].data;
}
