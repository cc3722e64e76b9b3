/* A file that is mapped into memory for reading. Does not know its content. */
#pragma once
#include <stddef.h>

typedef struct {
  const char *data;
  size_t size;
} MappedFile;

#ifdef _WIN32
typedef wchar_t PathUnit;
#else
typedef char PathUnit;
#endif

/** Returns 0 if the file cannot be mapped. */
int file_map(const PathUnit *path, MappedFile *file);
/** Gives the memory of the pages back that were read. They are read again when they are used. */
void file_forget(MappedFile *file);
void file_unmap(MappedFile *file);

typedef struct {
  char *data;
  size_t size;
} Memory;

/** Memory in large pages. Returns 0 where the system has none for programs, or no memory. */
int memory_open(size_t size, Memory *memory);
void memory_close(Memory *memory);
