package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	defaultBytes = 1 << 30
	// The least that a device can have.
	leastBytes = 16 << 20
	// What sizes are rounded up to: the sector size of a device.
	sectorBytes = 4096
	// Sidecars add parameters below it that are not for the driver.
	sidecarPrefix = "csi.storage.k8s.io/"
)

// An identifier is also the name of a device and of a file, so it holds nothing else.
var volumeID = regexp.MustCompile(`^vol-[0-9a-f]{16}$`)

// controller makes and removes volumes: each is a device file of this node.
type controller struct {
	csi.UnimplementedControllerServer
	*driver
}

func (c *controller) ControllerGetCapabilities(context.Context, *csi.ControllerGetCapabilitiesRequest) (*csi.ControllerGetCapabilitiesResponse, error) {
	var capabilities []*csi.ControllerServiceCapability
	for _, kind := range []csi.ControllerServiceCapability_RPC_Type{
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME,
		csi.ControllerServiceCapability_RPC_LIST_VOLUMES,
		csi.ControllerServiceCapability_RPC_GET_CAPACITY,
		csi.ControllerServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER,
	} {
		rpc := &csi.ControllerServiceCapability_Rpc{Rpc: &csi.ControllerServiceCapability_RPC{Type: kind}}
		capabilities = append(capabilities, &csi.ControllerServiceCapability{Type: rpc})
	}
	return &csi.ControllerGetCapabilitiesResponse{Capabilities: capabilities}, nil
}

func (c *controller) CreateVolume(ctx context.Context, request *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	if request.Name == "" {
		return nil, status.Error(codes.InvalidArgument, "a volume needs a name")
	}
	if request.VolumeContentSource != nil {
		return nil, status.Error(codes.InvalidArgument, "volumes with a content source: the service has no snapshots and no clones yet")
	}
	if why := refused(request.VolumeCapabilities); why != "" {
		return nil, status.Error(codes.InvalidArgument, why)
	}
	options, err := options(request.Parameters)
	if err != nil {
		return nil, err
	}
	size, err := wanted(request.CapacityRange)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(request.Name))
	id := "vol-" + hex.EncodeToString(sum[:8])
	unlock, err := c.lock(id)
	if err != nil {
		return nil, err
	}
	defer unlock()
	has, err := c.volume(ctx, id)
	switch {
	case status.Code(err) == codes.NotFound:
		words := append([]string{"create", c.path(id), "--size", strconv.FormatInt(size, 10)}, options...)
		if err := c.vsl.run(ctx, nil, words...); err != nil {
			return nil, err
		}
		has = size
		err = c.handOver(c.path(id))
	case err != nil:
		return nil, err
	case !fits(has, request.CapacityRange):
		return nil, status.Errorf(codes.AlreadyExists, "the volume %q is there with %d bytes, which are not what is asked for", request.Name, has)
	default:
		// A request that was cut off may have left it to the driver's user.
		err = c.handOver(c.path(id))
	}
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &csi.CreateVolumeResponse{Volume: &csi.Volume{VolumeId: id, CapacityBytes: has, AccessibleTopology: []*csi.Topology{c.topology()}}}, nil
}

func (c *controller) DeleteVolume(ctx context.Context, request *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	if request.VolumeId == "" {
		return nil, status.Error(codes.InvalidArgument, "a volume's identifier is missing")
	}
	// What is no identifier of ours is no volume of ours, and gone already.
	if !volumeID.MatchString(request.VolumeId) {
		return &csi.DeleteVolumeResponse{}, nil
	}
	unlock, err := c.lock(request.VolumeId)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := c.vsl.detach(ctx, request.VolumeId); err != nil {
		return nil, err
	}
	if err := os.Remove(c.path(request.VolumeId)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &csi.DeleteVolumeResponse{}, nil
}

func (c *controller) ValidateVolumeCapabilities(ctx context.Context, request *csi.ValidateVolumeCapabilitiesRequest) (*csi.ValidateVolumeCapabilitiesResponse, error) {
	if request.VolumeId == "" || len(request.VolumeCapabilities) == 0 {
		return nil, status.Error(codes.InvalidArgument, "a volume's identifier and capabilities are needed")
	}
	if _, err := c.volume(ctx, request.VolumeId); err != nil {
		return nil, err
	}
	if why := refused(request.VolumeCapabilities); why != "" {
		return &csi.ValidateVolumeCapabilitiesResponse{Message: why}, nil
	}
	confirmed := &csi.ValidateVolumeCapabilitiesResponse_Confirmed{VolumeCapabilities: request.VolumeCapabilities}
	return &csi.ValidateVolumeCapabilitiesResponse{Confirmed: confirmed}, nil
}

func (c *controller) ListVolumes(ctx context.Context, request *csi.ListVolumesRequest) (*csi.ListVolumesResponse, error) {
	// A token is the identifier that comes next, so that volumes may come and go between two calls.
	if request.StartingToken != "" && !volumeID.MatchString(request.StartingToken) {
		return nil, status.Errorf(codes.Aborted, "%q is no token of this driver", request.StartingToken)
	}
	files, err := filepath.Glob(c.path("vol-*"))
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	slices.Sort(files)
	response := &csi.ListVolumesResponse{}
	for _, file := range files {
		id := strings.TrimSuffix(filepath.Base(file), ".vsl")
		if !volumeID.MatchString(id) || id < request.StartingToken {
			continue
		}
		if request.MaxEntries > 0 && len(response.Entries) == int(request.MaxEntries) {
			response.NextToken = id
			break
		}
		size, err := c.volume(ctx, id)
		if status.Code(err) == codes.NotFound {
			continue
		}
		if err != nil {
			return nil, err
		}
		volume := &csi.Volume{VolumeId: id, CapacityBytes: size, AccessibleTopology: []*csi.Topology{c.topology()}}
		response.Entries = append(response.Entries, &csi.ListVolumesResponse_Entry{Volume: volume})
	}
	return response, nil
}

// GetCapacity says what is free on the store. Volumes are thin: together they may promise more.
func (c *controller) GetCapacity(context.Context, *csi.GetCapacityRequest) (*csi.GetCapacityResponse, error) {
	var store syscall.Statfs_t
	if err := syscall.Statfs(c.directory, &store); err != nil {
		return nil, status.Errorf(codes.Internal, "%s: %v", c.directory, err)
	}
	return &csi.GetCapacityResponse{AvailableCapacity: int64(store.Bavail) * store.Bsize}, nil
}

// options turns the parameters of a storage class into those of `vsl create`.
func options(parameters map[string]string) ([]string, error) {
	known := map[string]string{"overProvisioning": "--over-provisioning", "capacity": "--capacity"}
	var words []string
	for name, value := range parameters {
		option, is := known[name]
		switch {
		case is:
			words = append(words, option+"="+value)
		case !strings.HasPrefix(name, sidecarPrefix):
			return nil, status.Errorf(codes.InvalidArgument, "the parameter %q is not known; expected overProvisioning or capacity", name)
		}
	}
	return words, nil
}

// wanted is the size that a new volume gets.
func wanted(asked *csi.CapacityRange) (int64, error) {
	size := asked.GetRequiredBytes()
	if size == 0 {
		size = defaultBytes
		if limit := asked.GetLimitBytes(); limit > 0 && limit < size {
			size = limit / sectorBytes * sectorBytes
		}
	}
	size = max(leastBytes, (size+sectorBytes-1)/sectorBytes*sectorBytes)
	if !fits(size, asked) {
		return 0, status.Errorf(codes.OutOfRange, "%d bytes at most are asked for; the least that holds them is %d", asked.GetLimitBytes(), size)
	}
	return size, nil
}

// fits says whether a volume of this size is what is asked for.
func fits(size int64, asked *csi.CapacityRange) bool {
	return size >= asked.GetRequiredBytes() && (asked.GetLimitBytes() == 0 || size <= asked.GetLimitBytes())
}

// refused says why volumes cannot be used like this; nothing if they can.
func refused(capabilities []*csi.VolumeCapability) string {
	if len(capabilities) == 0 {
		return "a volume needs capabilities"
	}
	for _, capability := range capabilities {
		if why := refusedOne(capability); why != "" {
			return why
		}
	}
	return ""
}

func refusedOne(capability *csi.VolumeCapability) string {
	switch capability.GetAccessMode().GetMode() {
	case csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER,
		csi.VolumeCapability_AccessMode_SINGLE_NODE_READER_ONLY,
		csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER,
		csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER:
	default:
		return "a device serves one node: access from several is not possible"
	}
	if mount := capability.GetMount(); mount != nil && mount.FsType != "" && !slices.Contains(fileSystems, mount.FsType) {
		return "the file system " + mount.FsType + " is not known; expected one of " + strings.Join(fileSystems, ", ")
	}
	if capability.GetMount() == nil && capability.GetBlock() == nil {
		return "a volume is mounted or used as a block device: its capability names neither"
	}
	return ""
}
