//! The types of the published API.

/// A device that is open; -1 is none.
pub type nvm_handle_t = i32;

/// Major version of this API.
pub const NVM_PRIMITIVES_API_MAJOR: u32 = 1;
/// Minor version of this API.
pub const NVM_PRIMITIVES_API_MINOR: u32 = 0;
/// Micro version of this API.
pub const NVM_PRIMITIVES_API_MICRO: u32 = 0;

/// Write the data of an operation.
pub const NVM_IOV_WRITE: u32 = 0;
/// Forget the sectors of an operation.
pub const NVM_IOV_TRIM: u32 = 1;

/// A version of the API.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct nvm_version_t {
    /// Programs and libraries of different ones do not fit.
    pub major: u32,
    /// Raised with each addition.
    pub minor: u32,
    /// Raised with each mended defect.
    pub micro: u32,
}

/// One operation of a batch.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct nvm_iovec_t {
    /// Address of the data, for a write.
    pub iov_base: u64,
    /// Bytes, a multiple of the sector size.
    pub iov_len: u64,
    /// NVM_IOV_WRITE or NVM_IOV_TRIM.
    pub iov_opcode: u32,
    /// Not used.
    pub reserved: u32,
    /// The first sector.
    pub iov_lba: u64,
}

/// Sectors in a row.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct nvm_block_range_t {
    /// The first.
    pub start_lba: u64,
    /// How many.
    pub length: u64,
}

/// A question for the first mapped range, and its answer.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct nvm_range_op_t {
    /// Where to look.
    pub check_range: nvm_block_range_t,
    /// What was found; its length is 0 where nothing is mapped.
    pub range_found: nvm_block_range_t,
}

/// Which sectors an iterator gives.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct nvm_iter_filter_t {
    /// The bits of a sector's number that count; 0 for all sectors.
    pub filter_mask: u64,
    /// What those bits must be.
    pub filter_pattern: u64,
    /// Must be 0: sectors have no age.
    pub filter_expiry: u64,
}

/// A walk over mapped ranges.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct nvm_logical_range_iter_t {
    /// Where to look; each call moves it behind what it found.
    pub range_to_iterate: nvm_block_range_t,
    /// Which sectors count.
    pub filters: nvm_iter_filter_t,
    /// Room for as many ranges.
    pub ranges: *mut nvm_block_range_t,
    /// How many that are.
    pub max_ranges: u64,
    /// Not used.
    pub reserved: u64,
}

/// How much there is of a device, in sectors.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct nvm_capacity_t {
    /// Sectors that can hold data.
    pub total_phys_capacity: u64,
    /// Sectors that do.
    pub used_phys_capacity: u64,
    /// Sectors that have an address.
    pub total_logical_capacity: u64,
}

/// A capability, and what it is.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct nvm_capability_t {
    /// Which.
    pub cap_id: u32,
    /// NVM_CAP_SUCCESS, or NVM_CAP_UNKNOWN where there is no such capability.
    pub retcode: i32,
    /// Its value.
    pub cap_value: u64,
}
