// A ledger that needs no log: each transfer changes two accounts in one atomic batch.
//
// cc ledger.c $(pkg-config --cflags --libs openvsl) -o ledger
// ./ledger DEVICE FROM TO AMOUNT    DEVICE: a device's file, or an address as `vsl status DEVICE --field nvme_uri` prints it

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nvm/nvm_primitives.h>

#define SECTOR 4096

// An account has a sector of its own, which begins with its balance.
static int64_t balance(nvm_handle_t device, uint64_t account, uint8_t *sector) {
    int64_t cents;
    if (openvsl_read(device, sector, SECTOR, account) < 0) {
        fprintf(stderr, "account %" PRIu64 ": %s\n", account, openvsl_error());
        exit(1);
    }
    memcpy(&cents, sector, sizeof cents);
    return cents;
}

static int transfer(nvm_handle_t device, uint64_t from, uint64_t to, int64_t cents) {
    static uint8_t sectors[2][SECTOR];
    int64_t left = balance(device, from, sectors[0]) - cents;
    int64_t there = balance(device, to, sectors[1]) + cents;
    memcpy(sectors[0], &left, sizeof left);
    memcpy(sectors[1], &there, sizeof there);
    nvm_iovec_t both[2] = {
        {.iov_base = (uint64_t)(uintptr_t)sectors[0], .iov_len = SECTOR, .iov_opcode = NVM_IOV_WRITE, .iov_lba = from},
        {.iov_base = (uint64_t)(uintptr_t)sectors[1], .iov_len = SECTOR, .iov_opcode = NVM_IOV_WRITE, .iov_lba = to},
    };
    // Whatever fails from here on, both accounts have changed or none has.
    return nvm_batch_atomic_operations(device, both, 2, 0);
}

int main(int argc, char **argv) {
    if (argc != 5) {
        fprintf(stderr, "usage: ledger DEVICE FROM TO AMOUNT\n");
        return 2;
    }
    int is_address = strncmp(argv[1], "nvme+", 5) == 0;
    nvm_handle_t device = is_address ? openvsl_connect(argv[1]) : openvsl_open(argv[1]);
    if (device < 0) {
        fprintf(stderr, "%s\n", openvsl_error());
        return 1;
    }
    uint64_t from = strtoull(argv[2], NULL, 10), to = strtoull(argv[3], NULL, 10);
    if (transfer(device, from, to, strtoll(argv[4], NULL, 10)) < 0) {
        fprintf(stderr, "nothing was transferred: %s (%s)\n", openvsl_error(), strerror(errno));
        nvm_release_handle(device);
        return 1;
    }
    uint8_t sector[SECTOR];
    printf("%" PRId64 " %" PRId64 "\n", balance(device, from, sector), balance(device, to, sector));
    return nvm_release_handle(device) == 0 ? 0 : 1;
}
