// Every function of the C library, called as programs written for the NVM primitives of 2013 call them. The names and the order of
// the calls are theirs; each step that does not do as it should is named, and ends the program.

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <nvm/nvm_primitives.h>
#include <nvm/nvm_types.h>

#define EXPECT(what)                                                                         \
    do {                                                                                     \
        if (!(what)) {                                                                       \
            printf("line %d: %s; errno %d, %s\n", __LINE__, #what, errno, openvsl_error());  \
            exit(1);                                                                         \
        }                                                                                    \
    } while (0)

static uint64_t address(const void *data) { return (uint64_t)(uintptr_t)data; }

int main(int argc, char **argv) {
    EXPECT(argc == 2);
    nvm_version_t theirs = {1, 0, 0}, library;
    EXPECT(nvm_get_version(&library) == 0 && library.major == NVM_PRIMITIVES_API_MAJOR);

    EXPECT(openvsl_create(argv[1], 64 << 20) == 0);
    EXPECT(openvsl_create(argv[1], 64 << 20) == -1 && errno == EEXIST && strstr(openvsl_error(), argv[1]));
    int fd = open(argv[1], O_RDWR | O_DIRECT);
    EXPECT(fd >= 0);
    nvm_version_t other = {2, 0, 0};
    EXPECT(nvm_get_handle(fd, &other) == -1 && errno == EINVAL);
    EXPECT(nvm_get_handle(4711, &theirs) == -1 && errno == EBADF);
    nvm_handle_t handle = nvm_get_handle(fd, &theirs);
    EXPECT(handle >= 0);
    EXPECT(nvm_get_handle(fd, &theirs) == -1);

    nvm_capability_t caps[NVM_CAP_MAX + 1];
    EXPECT(nvm_get_capabilities(handle, caps, NVM_CAP_MAX + 1, true) == NVM_CAP_MAX);
    nvm_capability_t some[3] = {
        {.cap_id = NVM_CAP_SECTOR_SIZE_ID}, {.cap_id = 999}, {.cap_id = NVM_CAP_ATOMIC_WRITE_MAX_TOTAL_SIZE_ID}};
    EXPECT(nvm_get_capabilities(handle, some, 3, false) == 2);
    EXPECT(some[0].retcode == NVM_CAP_SUCCESS && some[1].retcode == NVM_CAP_UNKNOWN);
    uint64_t sector = some[0].cap_value, most = some[2].cap_value;
    EXPECT(sector == 4096 && most == 1 << 20);
    EXPECT(caps[0].cap_id == NVM_CAP_FEATURE_SPARSE_ADDRESSING_ID && caps[0].cap_value & NVM_CAP_FEATURE_SUPPORTED);

    nvm_capacity_t capacity;
    EXPECT(nvm_get_capacity(handle, &capacity) == 0);
    EXPECT(capacity.total_logical_capacity == (64 << 20) / sector && capacity.used_phys_capacity == 0);

    uint8_t *data = malloc(most + sector), *found = malloc(most);
    memset(data, 'z', most + sector);
    EXPECT(nvm_block_exists(handle, 0) == 0);
    EXPECT(nvm_atomic_write(handle, address(data), most, 0) == (int)most);
    EXPECT(nvm_atomic_write(handle, address(data), most + sector, 0) == -1 && errno == EINVAL);
    EXPECT(nvm_atomic_write(handle, address(data), 100, 0) == -1 && errno == EINVAL);
    EXPECT(nvm_atomic_write(handle, 0, sector, 0) == -1 && errno == EINVAL);
    EXPECT(nvm_atomic_write(handle, address(data), sector, capacity.total_logical_capacity) == -1 && errno == EINVAL);
    EXPECT(nvm_block_exists(handle, 0) == 1 && nvm_block_exists(handle, 1 << 30) == -1);
    EXPECT(openvsl_read(handle, found, most, 0) == (int)most && memcmp(found, data, most) == 0);

    nvm_range_op_t range = {.check_range = {.start_lba = most / sector - 24, .length = 48}};
    EXPECT(nvm_range_exists(handle, &range) == 0);
    EXPECT(range.range_found.start_lba == most / sector - 24 && range.range_found.length == 24);
    range.check_range = (nvm_block_range_t){.start_lba = 5000, .length = 10};
    EXPECT(nvm_range_exists(handle, &range) == 0 && range.range_found.length == 0);

    // A batch: forgets what was written, and writes eight ranges.
    nvm_iovec_t iov[9] = {{.iov_lba = 0, .iov_len = most, .iov_opcode = NVM_IOV_TRIM}};
    for (int i = 1; i < 9; i++)
        iov[i] = (nvm_iovec_t){.iov_base = address(data), .iov_len = 2 * sector, .iov_opcode = NVM_IOV_WRITE, .iov_lba = 1000 + 16 * i};
    EXPECT(nvm_batch_atomic_operations(handle, iov, 9, 0) == (int)(16 * sector));
    EXPECT(nvm_block_exists(handle, 0) == 0 && nvm_block_exists(handle, 1016) == 1);
    iov[8].iov_lba = iov[7].iov_lba + 1;
    EXPECT(nvm_batch_atomic_operations(handle, iov, 9, 0) == -1 && errno == EINVAL && strstr(openvsl_error(), "overlap"));
    iov[8].iov_opcode = 77;
    EXPECT(nvm_batch_atomic_operations(handle, iov, 9, 0) == -1 && errno == EINVAL);
    EXPECT(nvm_batch_atomic_operations(handle, iov, 0, 0) == -1 && errno == EINVAL);

    // All ranges, three at a time.
    nvm_block_range_t ranges[3];
    nvm_logical_range_iter_t iterator = {
        .range_to_iterate = {.start_lba = 0, .length = capacity.total_logical_capacity}, .ranges = ranges, .max_ranges = 3};
    uint64_t count = 0, calls = 0;
    int now;
    do {
        now = nvm_logical_range_iterator(handle, &iterator);
        EXPECT(now >= 0);
        for (int i = 0; i < now; i++, count++)
            EXPECT(ranges[i].start_lba == 1016 + 16 * count && ranges[i].length == 2);
        calls++;
    } while (now == 3);
    EXPECT(count == 8 && calls == 3);
    // Only every other one, and of it the first sector.
    iterator.range_to_iterate = (nvm_block_range_t){.start_lba = 0, .length = capacity.total_logical_capacity};
    iterator.filters.filter_mask = 31;
    iterator.filters.filter_pattern = 1016 % 32;
    EXPECT(nvm_logical_range_iterator(handle, &iterator) == 3);
    EXPECT(ranges[0].start_lba == 1016 && ranges[0].length == 1 && ranges[1].start_lba == 1048);
    EXPECT(nvm_logical_range_iterator(handle, &iterator) == 1 && ranges[0].start_lba == 1016 + 96);
    iterator.filters.filter_expiry = 1;
    EXPECT(nvm_logical_range_iterator(handle, &iterator) == -1 && errno == EOPNOTSUPP);

    EXPECT(nvm_atomic_trim(handle, 1016, 2 * sector) == 0 && nvm_block_exists(handle, 1016) == 0);
    EXPECT(openvsl_write(handle, data, sector, 7) == (int)sector && openvsl_flush(handle) == 0);
    EXPECT(nvm_release_handle(handle) == 0);
    EXPECT(nvm_release_handle(handle) == -1 && errno == EBADF);
    EXPECT(openvsl_flush(handle) == -1 && errno == EBADF);
    EXPECT(nvm_block_exists(-1, 0) == -1 && errno == EBADF);

    handle = openvsl_open(argv[1]);
    EXPECT(handle >= 0 && nvm_block_exists(handle, 7) == 1);
    EXPECT(nvm_release_handle(handle) == 0);
    EXPECT(openvsl_open("/nowhere/device.vsl") == -1 && strstr(openvsl_error(), "/nowhere/device.vsl"));
    EXPECT(openvsl_connect("localhost") == -1 && errno == EINVAL);
    EXPECT(openvsl_open(NULL) == -1 && errno == EINVAL);
    printf("all as it should be\n");
    return 0;
}
