/* A small Node-API for faults.c: values, references and steps, and a call that fails on request. */
#pragma once
#include <node_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum { UNDEFINED, TEXT, NUMBER, ARRAY, LIST, EXTERNAL, FUNCTION, PROMISE, OTHER } Kind;

struct napi_value__ {
  Kind kind;
  const char *text;
  double number;
  napi_typedarray_type type;
  void *data;
  size_t length;
  napi_value elements[64];
  napi_callback function;
  napi_finalize finalize;
  napi_value next;
};
struct napi_ref__ { napi_value value; };
struct napi_async_work__ {
  napi_async_execute_callback execute;
  napi_async_complete_callback complete;
  void *data;
  int isQueued;
};
struct napi_callback_info__ { size_t count; napi_value args[6]; };

/** The call that fails, counted from 1; 0: none. */
static int failing, calls;
/** What the addon has not given back. */
static int references, works;
static int hasThrown;
static napi_value all;
static napi_async_work queued;

static napi_value new_value(Kind kind) {
  napi_value value = calloc(1, sizeof *value);
  *value = (struct napi_value__){.kind = kind, .next = all};
  return all = value;
}

static napi_status called(void) { return ++calls == failing ? napi_generic_failure : napi_ok; }
#define CALLED() if (called() != napi_ok) return napi_generic_failure
#define ANSWER(kind, out) CALLED(); const napi_value made = new_value(kind); *(out) = made

napi_status napi_create_array(napi_env e, napi_value *out) { ANSWER(LIST, out); return napi_ok; }
napi_status napi_create_int32(napi_env e, int32_t n, napi_value *out) {
  ANSWER(NUMBER, out);
  made->number = n;
  return napi_ok;
}
napi_status napi_create_string_utf8(napi_env e, const char *text, size_t length, napi_value *out) {
  ANSWER(TEXT, out);
  made->text = text;
  return napi_ok;
}
napi_status napi_create_error(napi_env e, napi_value code, napi_value message, napi_value *out) {
  ANSWER(OTHER, out);
  return napi_ok;
}
napi_status napi_create_external(napi_env e, void *data, napi_finalize finalize, void *hint, napi_value *out) {
  ANSWER(EXTERNAL, out);
  made->data = data;
  made->finalize = finalize;
  return napi_ok;
}
napi_status napi_create_function(napi_env e, const char *name, size_t length, napi_callback call, void *data,
                                 napi_value *out) {
  ANSWER(FUNCTION, out);
  made->text = name;
  made->function = call;
  return napi_ok;
}
napi_status napi_create_promise(napi_env e, napi_deferred *unsettled, napi_value *out) {
  ANSWER(PROMISE, out);
  *unsettled = (napi_deferred)made;
  return napi_ok;
}
static napi_status settle(napi_value promise, const char *how) {
  CALLED();
  promise->text = how;
  return napi_ok;
}
napi_status napi_resolve_deferred(napi_env e, napi_deferred promise, napi_value value) {
  return settle((napi_value)promise, "resolved");
}
napi_status napi_reject_deferred(napi_env e, napi_deferred promise, napi_value value) {
  return settle((napi_value)promise, "rejected");
}
napi_status napi_create_reference(napi_env e, napi_value value, uint32_t count, napi_ref *out) {
  CALLED();
  *out = malloc(sizeof **out);
  (*out)->value = value;
  references++;
  return napi_ok;
}
napi_status napi_delete_reference(napi_env e, napi_ref reference) {
  free(reference);
  references--;
  return napi_ok;
}
napi_status napi_create_async_work(napi_env e, napi_value resource, napi_value name,
                                   napi_async_execute_callback execute, napi_async_complete_callback complete,
                                   void *data, napi_async_work *out) {
  CALLED();
  *out = malloc(sizeof **out);
  **out = (struct napi_async_work__){execute, complete, data, 0};
  works++;
  return napi_ok;
}
napi_status napi_queue_async_work(napi_env e, napi_async_work work) {
  CALLED();
  queued = work;
  return napi_ok;
}
napi_status napi_delete_async_work(napi_env e, napi_async_work work) {
  free(work);
  works--;
  return napi_ok;
}
napi_status napi_get_cb_info(napi_env e, napi_callback_info info, size_t *count, napi_value *args, napi_value *self,
                             void **data) {
  CALLED();
  for (size_t i = 0; i < *count && i < info->count; i++) args[i] = info->args[i];
  *count = info->count;
  return napi_ok;
}
napi_status napi_get_element(napi_env e, napi_value list, uint32_t index, napi_value *out) {
  CALLED();
  *out = list->elements[index];
  return *out ? napi_ok : napi_generic_failure;
}
napi_status napi_set_element(napi_env e, napi_value list, uint32_t index, napi_value value) {
  CALLED();
  list->elements[index] = value;
  return napi_ok;
}
napi_status napi_set_named_property(napi_env e, napi_value object, const char *name, napi_value value) {
  CALLED();
  for (int i = 0; i < 64; i++)
    if (!object->elements[i]) {
      object->elements[i] = value;
      break;
    }
  return napi_ok;
}
napi_status napi_is_typedarray(napi_env e, napi_value value, bool *is) {
  CALLED();
  *is = value->kind == ARRAY;
  return napi_ok;
}
napi_status napi_get_typedarray_info(napi_env e, napi_value value, napi_typedarray_type *type, size_t *length,
                                     void **data, napi_value *buffer, size_t *offset) {
  CALLED();
  *type = value->type;
  *length = value->length;
  *data = value->data;
  return napi_ok;
}
napi_status napi_get_undefined(napi_env e, napi_value *out) { ANSWER(UNDEFINED, out); return napi_ok; }
napi_status napi_get_value_double(napi_env e, napi_value value, double *out) {
  CALLED();
  *out = value->number;
  return napi_ok;
}
napi_status napi_get_value_int32(napi_env e, napi_value value, int32_t *out) {
  CALLED();
  *out = (int32_t)value->number;
  return napi_ok;
}
napi_status napi_get_value_external(napi_env e, napi_value value, void **out) {
  CALLED();
  *out = value->data;
  return napi_ok;
}
napi_status napi_get_value_string_utf8(napi_env e, napi_value value, char *out, size_t size, size_t *length) {
  CALLED();
  if (value->kind != TEXT) return napi_string_expected;
  *length = strlen(value->text);
  if (out) memcpy(out, value->text, *length + 1);
  return napi_ok;
}
napi_status napi_typeof(napi_env e, napi_value value, napi_valuetype *out) {
  CALLED();
  *out = value->kind == EXTERNAL ? napi_external : napi_object;
  return napi_ok;
}
napi_status napi_throw_error(napi_env e, const char *code, const char *message) {
  hasThrown = 1;
  return napi_ok;
}
void napi_module_register(napi_module *m) {}
