/*
 * Functions of Node-API. On Windows the host may be node.exe, Code.exe or another program, so they are taken from the
 * running program instead of an import that names one.
 */
#pragma once
#include <node_api.h>

#ifdef _WIN32
#define HOST_FUNCTIONS(X)                                                                                    \
  X(napi_create_array) X(napi_create_async_work) X(napi_create_error) X(napi_create_external)                \
  X(napi_create_function) X(napi_create_int32) X(napi_create_promise) X(napi_create_reference)               \
  X(napi_create_string_utf8) X(napi_delete_async_work) X(napi_delete_reference) X(napi_get_cb_info)          \
  X(napi_get_element) X(napi_get_typedarray_info) X(napi_get_undefined) X(napi_get_value_double)             \
  X(napi_get_value_external) X(napi_get_value_int32) X(napi_get_value_string_utf16)                          \
  X(napi_get_value_string_utf8) X(napi_is_typedarray) X(napi_queue_async_work) X(napi_reject_deferred)       \
  X(napi_resolve_deferred) X(napi_set_element) X(napi_set_named_property) X(napi_throw_error)                \
  X(napi_typeof)
#define X(f) extern __typeof__(&f) host_##f;
HOST_FUNCTIONS(X)
#undef X
#define napi_create_array host_napi_create_array
#define napi_create_async_work host_napi_create_async_work
#define napi_create_error host_napi_create_error
#define napi_create_external host_napi_create_external
#define napi_create_function host_napi_create_function
#define napi_create_int32 host_napi_create_int32
#define napi_create_promise host_napi_create_promise
#define napi_create_reference host_napi_create_reference
#define napi_create_string_utf8 host_napi_create_string_utf8
#define napi_delete_async_work host_napi_delete_async_work
#define napi_delete_reference host_napi_delete_reference
#define napi_get_cb_info host_napi_get_cb_info
#define napi_get_element host_napi_get_element
#define napi_get_typedarray_info host_napi_get_typedarray_info
#define napi_get_undefined host_napi_get_undefined
#define napi_get_value_double host_napi_get_value_double
#define napi_get_value_external host_napi_get_value_external
#define napi_get_value_int32 host_napi_get_value_int32
#define napi_get_value_string_utf16 host_napi_get_value_string_utf16
#define napi_get_value_string_utf8 host_napi_get_value_string_utf8
#define napi_is_typedarray host_napi_is_typedarray
#define napi_queue_async_work host_napi_queue_async_work
#define napi_reject_deferred host_napi_reject_deferred
#define napi_resolve_deferred host_napi_resolve_deferred
#define napi_set_element host_napi_set_element
#define napi_set_named_property host_napi_set_named_property
#define napi_throw_error host_napi_throw_error
#define napi_typeof host_napi_typeof
#endif

/** Returns 0 if the host lacks a function. */
int bind_host(void);
