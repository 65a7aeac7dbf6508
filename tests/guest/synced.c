/*
 * synced PATH PORT COUNTER...: for each counter a process that writes it over and over into a block of its own, one higher each time, and
 * tells the host's PORT of each number that is synced. It ends with the first error.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define BLOCK 16384
#define PIECE 512

static int work(const char *path, int port, int place, long number) {
  struct sockaddr_in host = {.sin_family = AF_INET, .sin_port = htons(port)};
  inet_pton(AF_INET, "10.0.2.2", &host.sin_addr);
  int told = socket(AF_INET, SOCK_STREAM, 0), file = open(path, O_RDWR);
  if (file < 0 || connect(told, (struct sockaddr *)&host, sizeof host) != 0) return 1;
  for (;;) {
    char piece[PIECE] = {0}, line[64];
    number++;
    memcpy(piece, &number, sizeof number);
    /* A piece of the block after the other, as the end of a log moves. */
    off_t at = (off_t)place * BLOCK + number % (BLOCK / PIECE) * PIECE;
    if (pwrite(file, piece, PIECE, at) != PIECE || fdatasync(file) != 0) return 1;
    int length = sprintf(line, "%d %ld\n", place, number);
    if (write(told, line, length) != length) return 1;
  }
}

int main(int count, char **words) {
  for (int place = 0; place < count - 3; place++)
    if (fork() == 0) return work(words[1], atoi(words[2]), place, atol(words[3 + place]));
  while (wait(NULL) > 0) {
  }
  return 0;
}
