// OpenVSL: the NVM primitives. Made from sdk/c/src by cbindgen; do not edit.
//
// Names and shapes are those of the published API of 2013, so that programs written for it compile. What begins with openvsl_ is
// ours. Each function says so in errno where it fails, and openvsl_error() in words. All of them may be called from any thread.

#ifndef NVM_PRIMITIVES_H
#define NVM_PRIMITIVES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The capability is known.
#define NVM_CAP_SUCCESS 0

// There is no such capability.
#define NVM_CAP_UNKNOWN -1

// A feature's value: the device could do it.
#define NVM_CAP_FEATURE_SUPPORTED 1

// A feature's value: the device does it.
#define NVM_CAP_FEATURE_ENABLED 2

// Feature: every sector may be used, and takes space when it is written.
#define NVM_CAP_FEATURE_SPARSE_ADDRESSING_ID 1

// Feature: writes and batches are atomic.
#define NVM_CAP_FEATURE_ATOMIC_WRITE_ID 2

// Feature: trimmed sectors stay trimmed, and read as zeros.
#define NVM_CAP_FEATURE_PTRIM_ID 3

// Feature: trims may be part of a batch.
#define NVM_CAP_FEATURE_ATOMIC_TRIM_ID 4

// Operations of a batch at most.
#define NVM_CAP_ATOMIC_MAX_IOV_ID 5

// Writes are multiples of so many bytes.
#define NVM_CAP_ATOMIC_WRITE_MULTIPLICITY_ID 6

// The largest write of one operation, in that unit.
#define NVM_CAP_ATOMIC_WRITE_MAX_VECTOR_SIZE_ID 7

// Data lie at addresses that are multiples of so many bytes.
#define NVM_CAP_ATOMIC_WRITE_START_ALIGN_ID 8

// The largest trim of one operation, in the unit of writes.
#define NVM_CAP_ATOMIC_TRIM_MAX_VECTOR_SIZE_ID 9

// Ranges that one call of an iterator gives at most.
#define NVM_CAP_LOGICAL_ITER_MAX_NUM_RANGES_ID 10

// Bytes of a sector.
#define NVM_CAP_SECTOR_SIZE_ID 11

// Bytes of all writes of a batch at most.
#define NVM_CAP_ATOMIC_WRITE_MAX_TOTAL_SIZE_ID 12

// How many capabilities there are.
#define NVM_CAP_MAX 12

// Major version of this API.
#define NVM_PRIMITIVES_API_MAJOR 1

// Minor version of this API.
#define NVM_PRIMITIVES_API_MINOR 0

// Micro version of this API.
#define NVM_PRIMITIVES_API_MICRO 0

// Write the data of an operation.
#define NVM_IOV_WRITE 0

// Forget the sectors of an operation.
#define NVM_IOV_TRIM 1

// A device that is open; -1 is none.
typedef int32_t nvm_handle_t;

// A version of the API.
typedef struct nvm_version_t {
  // Programs and libraries of different ones do not fit.
  uint32_t major;
  // Raised with each addition.
  uint32_t minor;
  // Raised with each mended defect.
  uint32_t micro;
} nvm_version_t;

// A capability, and what it is.
typedef struct nvm_capability_t {
  // Which.
  uint32_t cap_id;
  // NVM_CAP_SUCCESS, or NVM_CAP_UNKNOWN where there is no such capability.
  int32_t retcode;
  // Its value.
  uint64_t cap_value;
} nvm_capability_t;

// How much there is of a device, in sectors.
typedef struct nvm_capacity_t {
  // Sectors that can hold data.
  uint64_t total_phys_capacity;
  // Sectors that do.
  uint64_t used_phys_capacity;
  // Sectors that have an address.
  uint64_t total_logical_capacity;
} nvm_capacity_t;

// One operation of a batch.
typedef struct nvm_iovec_t {
  // Address of the data, for a write.
  uint64_t iov_base;
  // Bytes, a multiple of the sector size.
  uint64_t iov_len;
  // NVM_IOV_WRITE or NVM_IOV_TRIM.
  uint32_t iov_opcode;
  // Not used.
  uint32_t reserved;
  // The first sector.
  uint64_t iov_lba;
} nvm_iovec_t;

// Sectors in a row.
typedef struct nvm_block_range_t {
  // The first.
  uint64_t start_lba;
  // How many.
  uint64_t length;
} nvm_block_range_t;

// A question for the first mapped range, and its answer.
typedef struct nvm_range_op_t {
  // Where to look.
  struct nvm_block_range_t check_range;
  // What was found; its length is 0 where nothing is mapped.
  struct nvm_block_range_t range_found;
} nvm_range_op_t;

// Which sectors an iterator gives.
typedef struct nvm_iter_filter_t {
  // The bits of a sector's number that count; 0 for all sectors.
  uint64_t filter_mask;
  // What those bits must be.
  uint64_t filter_pattern;
  // Must be 0: sectors have no age.
  uint64_t filter_expiry;
} nvm_iter_filter_t;

// A walk over mapped ranges.
typedef struct nvm_logical_range_iter_t {
  // Where to look; each call moves it behind what it found.
  struct nvm_block_range_t range_to_iterate;
  // Which sectors count.
  struct nvm_iter_filter_t filters;
  // Room for as many ranges.
  struct nvm_block_range_t *ranges;
  // How many that are.
  uint64_t max_ranges;
  // Not used.
  uint64_t reserved;
} nvm_logical_range_iter_t;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Makes a device of `bytes` bytes, with sectors of 4096 bytes, in a new file. Returns 0, or -1.
//
// # Safety
// `path` is a text.
int32_t openvsl_create(const char *path, uint64_t bytes);

// Opens the device in a file, which this process then has alone. Returns its handle, or -1.
//
// # Safety
// `path` is a text.
nvm_handle_t openvsl_open(const char *path);

// Connects to a device of a service, at an address as `vsl status DEVICE --field nvme_uri` prints it. Returns its handle, or -1.
//
// # Safety
// `address` is a text.
nvm_handle_t openvsl_connect(const char *address);

// Reads `bytes` bytes from sector `lba` on. Returns how many were read, or -1.
//
// # Safety
// `data` has room for `bytes` bytes.
int32_t openvsl_read(nvm_handle_t handle, void *data, uint32_t bytes, uint64_t lba);

// Writes `bytes` bytes from sector `lba` on, atomically. They are durable after openvsl_flush(). Returns how many were written, or -1.
//
// # Safety
// `data` has `bytes` bytes.
int32_t openvsl_write(nvm_handle_t handle,
                      const void *data,
                      uint32_t bytes,
                      uint64_t lba);

// Makes durable what was written. Returns 0, or -1.
int32_t openvsl_flush(nvm_handle_t handle);

// What went wrong last on this thread, in words. The text is this thread's until its next failure.
const char *openvsl_error(void);

// Tells the version of this library. Returns 0, or -1.
//
// # Safety
// `version` has room for a version.
int32_t nvm_get_version(struct nvm_version_t *version);

// Takes the device in a file that is open, for a program that was written for this version of the API. This process has the device
// alone then; openvsl_connect() shares one. Returns its handle, or -1.
//
// # Safety
// `version` is a version.
nvm_handle_t nvm_get_handle(int32_t fd,
                            const struct nvm_version_t *version);

// Lets go of a device: detaches it, or hangs up. Returns 0, or -1.
int32_t nvm_release_handle(nvm_handle_t handle);

// Tells capabilities: those that `caps` names, `count` of them, or with `all_caps` as many as fit. Returns how many are known, or -1.
//
// # Safety
// `caps` has room for `count` capabilities.
int32_t nvm_get_capabilities(nvm_handle_t handle,
                             struct nvm_capability_t *caps,
                             uint32_t count,
                             bool all_caps);

// Tells how large a device is, and how much of it is used: it looks at the whole map. Returns 0, or -1.
//
// # Safety
// `capacity` has room for a capacity.
int32_t nvm_get_capacity(nvm_handle_t handle,
                         struct nvm_capacity_t *capacity);

// Writes `bytes` bytes that lie at the address `data` from sector `lba` on: after any crash all of it is there, or nothing. It is
// durable when this returns. Returns how many bytes were written, or -1.
//
// # Safety
// `data` is the address of `bytes` bytes.
int32_t nvm_atomic_write(nvm_handle_t handle,
                         uint64_t data,
                         uint32_t bytes,
                         uint64_t lba);

// Forgets `bytes` bytes from sector `lba` on; they read as zeros. It is durable when this returns. Returns 0, or -1.
int32_t nvm_atomic_trim(nvm_handle_t handle,
                        uint64_t lba,
                        uint64_t bytes);

// Carries out `count` writes and trims, no two of which may touch the same sector: after any crash all of them are there, or none. They
// are durable when this returns. `flags` must be 0. Returns how many bytes were written, or -1.
//
// # Safety
// `iov` has `count` operations, each write of which has its data.
int32_t nvm_batch_atomic_operations(nvm_handle_t handle,
                                    const struct nvm_iovec_t *iov,
                                    uint32_t operations,
                                    uint32_t flags);

// Whether a sector was written, and not trimmed since. Returns 1 or 0, or -1.
int32_t nvm_block_exists(nvm_handle_t handle, uint64_t block);

// Finds the first mapped range within another. Returns 0, or -1.
//
// # Safety
// `range` is such a question.
int32_t nvm_range_exists(nvm_handle_t handle, struct nvm_range_op_t *range);

// Gives the next mapped ranges, `max_ranges` at most, and moves the iterator behind them. Returns how many there are; fewer than
// `max_ranges` when there are no more; or -1.
//
// # Safety
// `iterator` is one, with room for its ranges.
int32_t nvm_logical_range_iterator(nvm_handle_t handle,
                                   struct nvm_logical_range_iter_t *iterator);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* NVM_PRIMITIVES_H */
