/* See file.h. Windows has other calls, and only Linux gives large pages to any program. */
#if defined(__linux__)
#define _GNU_SOURCE
#endif
#include "file.h"
#ifdef _WIN32
#include <windows.h>

int file_map(const PathUnit *path, MappedFile *file) {
  const HANDLE handle = CreateFileW(path, GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_DELETE, 0, OPEN_EXISTING, 0, 0);
  if (handle == INVALID_HANDLE_VALUE) return 0;
  LARGE_INTEGER size;
  const HANDLE mapping = GetFileSizeEx(handle, &size) && size.QuadPart > 0
                             ? CreateFileMappingW(handle, 0, PAGE_READONLY, 0, 0, 0)
                             : 0;
  CloseHandle(handle);
  if (!mapping) return 0;
  file->data = MapViewOfFile(mapping, FILE_MAP_READ, 0, 0, 0);
  file->size = (size_t)size.QuadPart;
  CloseHandle(mapping);
  return file->data != 0;
}

void file_unmap(MappedFile *file) {
  if (file->data) UnmapViewOfFile(file->data);
  file->data = 0;
}
void file_forget(MappedFile *file) { (void)file; }
#else
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int file_map(const PathUnit *path, MappedFile *file) {
  const int handle = open(path, O_RDONLY | O_CLOEXEC);
  if (handle < 0) return 0;
  struct stat info;
  void *data = MAP_FAILED;
  if (fstat(handle, &info) == 0 && info.st_size > 0)
    data = mmap(0, (size_t)info.st_size, PROT_READ, MAP_SHARED, handle, 0);
  close(handle);
  if (data == MAP_FAILED) return 0;
  file->data = data;
  file->size = (size_t)info.st_size;
  return 1;
}

void file_forget(MappedFile *file) { madvise((void *)file->data, file->size, MADV_DONTNEED); }

void file_unmap(MappedFile *file) {
  if (file->data) munmap((void *)file->data, file->size);
  file->data = 0;
}
#endif

#if defined(__linux__)
enum { LARGE_PAGE = 2 << 20 };

/** Whether the system gives large pages to programs that ask. Else madvise succeeds and does nothing. */
static int has_large_pages(void) {
  char text[64];
  const int handle = open("/sys/kernel/mm/transparent_hugepage/enabled", O_RDONLY | O_CLOEXEC);
  const ssize_t length = handle < 0 ? -1 : read(handle, text, sizeof text - 1);
  if (handle >= 0) close(handle);
  if (length < 0) return 0;
  text[length] = 0;
  return !strstr(text, "[never]");
}

int memory_open(size_t size, Memory *memory) {
  if (!has_large_pages()) return 0;
  memory->size = (size + LARGE_PAGE - 1) / LARGE_PAGE * LARGE_PAGE + LARGE_PAGE;
  char *data = mmap(0, memory->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return 0;
  char *first = (char *)(((size_t)data + LARGE_PAGE - 1) / LARGE_PAGE * LARGE_PAGE);
  // What lies before the first large page goes back at once.
  if (first > data) munmap(data, (size_t)(first - data));
  memory->size -= (size_t)(first - data);
  memory->data = first;
  if (madvise(first, memory->size, MADV_HUGEPAGE) == 0) return 1;
  memory_close(memory);
  return 0;
}

void memory_close(Memory *memory) {
  if (memory->data) munmap(memory->data, memory->size);
  memory->data = 0;
}
#else
int memory_open(size_t size, Memory *memory) {
  (void)size;
  memory->data = 0;
  return 0;
}

void memory_close(Memory *memory) { (void)memory; }
#endif
