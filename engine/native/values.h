/* Values of JavaScript: errors, typed arrays, paths. Does not know models. */
#pragma once
#include "file.h"
#include "host.h"

typedef struct {
  void *data;
  size_t length;
} Array;

/** Throws an error. Returns null. */
napi_value fail(napi_env, const char *message);
napi_value undefined(napi_env);
/** Returns 0 unless the value is a typed array of the type. */
int array_of(napi_env, napi_value, napi_typedarray_type, Array *);
/** The same for an element of a list. */
int array_at(napi_env, napi_value list, uint32_t index, napi_typedarray_type, Array *);
/** For free(). Null if the value is no string, or without memory. */
PathUnit *path_of(napi_env, napi_value);
