// Writes with a write stream: write_stream PATH STREAM OFFSET LENGTH BYTE. No program of Debian 12 names one.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static void fail(const char *what) {
  perror(what);
  exit(1);
}

int main(int argc, char **argv) {
  if (argc != 6) {
    fprintf(stderr, "usage: write_stream PATH STREAM OFFSET LENGTH BYTE\n");
    return 2;
  }
  size_t length = strtoul(argv[4], NULL, 0);
  void *content;
  if (posix_memalign(&content, 4096, length) != 0) {
    fail("memory");
  }
  memset(content, atoi(argv[5]), length);
  int file = open(argv[1], O_WRONLY | O_DIRECT);
  if (file < 0) {
    fail(argv[1]);
  }
  struct io_uring_params how = {0};
  int ring = syscall(SYS_io_uring_setup, 1, &how);
  if (ring < 0) {
    fail("io_uring_setup");
  }
  char *rings = mmap(NULL, how.sq_off.array + 4096, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
  struct io_uring_sqe *entry = mmap(NULL, sizeof *entry, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQES);
  if (rings == MAP_FAILED || entry == MAP_FAILED) {
    fail("mmap");
  }
  memset(entry, 0, sizeof *entry);
  entry->opcode = IORING_OP_WRITE;
  entry->fd = file;
  entry->addr = (unsigned long)content;
  entry->len = length;
  entry->off = strtoull(argv[3], NULL, 0);
  entry->splice_fd_in = atoi(argv[2]); // where write_stream stands since Linux 6.16 (include/uapi/linux/io_uring.h)
  *(unsigned *)(rings + how.sq_off.array) = 0;
  __atomic_store_n((unsigned *)(rings + how.sq_off.tail), 1, __ATOMIC_RELEASE);
  if (syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) != 1) {
    fail("io_uring_enter");
  }
  // Both rings are in one mapping since Linux 5.4.
  struct io_uring_cqe *answer = (struct io_uring_cqe *)(rings + how.cq_off.cqes);
  if (answer->res < 0) {
    fprintf(stderr, "write to stream %s: %s\n", argv[2], strerror(-answer->res));
    return 1;
  }
  return (size_t)answer->res == length ? 0 : 1;
}
