/* See host.h. */
#include "host.h"

#ifdef _WIN32
#include <windows.h>
#define X(f) __typeof__(host_##f) host_##f;
HOST_FUNCTIONS(X)
#undef X

int bind_host(void) {
  const HMODULE hosts[] = {GetModuleHandleW(0), GetModuleHandleA("libnode.dll"), GetModuleHandleA("node.dll")};
#define X(f)                                                                                                 \
  for (int i = 0; i < 3 && !host_##f; i++)                                                                   \
    if (hosts[i]) host_##f = (__typeof__(host_##f))(void *)GetProcAddress(hosts[i], #f);                     \
  if (!host_##f) return 0;
  HOST_FUNCTIONS(X)
#undef X
  return 1;
}
#else
int bind_host(void) { return 1; }
#endif
