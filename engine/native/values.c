/* See values.h. */
#include "values.h"
#include <stdlib.h>

napi_value fail(napi_env env, const char *message) {
  napi_throw_error(env, 0, message);
  return 0;
}

napi_value undefined(napi_env env) {
  napi_value value = 0;
  napi_get_undefined(env, &value);
  return value;
}

int array_of(napi_env env, napi_value value, napi_typedarray_type type, Array *array) {
  napi_typedarray_type actual;
  napi_value buffer;
  size_t offset;
  bool is = false;
  return napi_is_typedarray(env, value, &is) == napi_ok && is &&
         napi_get_typedarray_info(env, value, &actual, &array->length, &array->data, &buffer, &offset) == napi_ok &&
         actual == type;
}

int array_at(napi_env env, napi_value list, uint32_t index, napi_typedarray_type type, Array *array) {
  napi_value value;
  return napi_get_element(env, list, index, &value) == napi_ok && array_of(env, value, type, array);
}

PathUnit *path_of(napi_env env, napi_value value) {
  size_t length;
#ifdef _WIN32
  if (napi_get_value_string_utf16(env, value, 0, 0, &length) != napi_ok) return 0;
  PathUnit *path = malloc((length + 1) * sizeof *path);
  if (path) napi_get_value_string_utf16(env, value, (char16_t *)path, length + 1, &length);
#else
  if (napi_get_value_string_utf8(env, value, 0, 0, &length) != napi_ok) return 0;
  PathUnit *path = malloc(length + 1);
  if (path) napi_get_value_string_utf8(env, value, path, length + 1, &length);
#endif
  return path;
}
