// Writes with RWF_ATOMIC: atomic_write PATH OFFSET LENGTH BYTE. The fio and the C library of Debian 12 have no name for it.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#ifndef RWF_ATOMIC
#define RWF_ATOMIC 0x40 // include/uapi/linux/fs.h, since Linux 6.11
#endif

int main(int argc, char **argv) {
  if (argc != 5) {
    fprintf(stderr, "usage: atomic_write PATH OFFSET LENGTH BYTE\n");
    return 2;
  }
  size_t length = strtoul(argv[3], NULL, 0);
  void *content;
  // One huge page at most: a buffer in a single piece is never split for having too many segments.
  if (posix_memalign(&content, 2 << 20, length) != 0) {
    perror("memory");
    return 1;
  }
  memset(content, atoi(argv[4]), length);
  int file = open(argv[1], O_WRONLY | O_DIRECT);
  if (file < 0) {
    perror(argv[1]);
    return 1;
  }
  struct iovec one = {content, length};
  ssize_t written = pwritev2(file, &one, 1, strtoll(argv[2], NULL, 0), RWF_ATOMIC);
  if (written < 0) {
    fprintf(stderr, "atomic write of %zu bytes: %s\n", length, strerror(errno));
    return 1;
  }
  return (size_t)written == length ? 0 : 1;
}
