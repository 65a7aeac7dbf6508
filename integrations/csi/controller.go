package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"slices"
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
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT,
		csi.ControllerServiceCapability_RPC_LIST_SNAPSHOTS,
		csi.ControllerServiceCapability_RPC_CLONE_VOLUME,
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
	if why := refused(request.VolumeCapabilities); why != "" {
		return nil, status.Error(codes.InvalidArgument, why)
	}
	options, err := options(request.Parameters)
	if err != nil {
		return nil, err
	}
	if err := c.reachable(request.AccessibilityRequirements); err != nil {
		return nil, err
	}
	from, err := sourceOf(request.VolumeContentSource)
	if err != nil {
		return nil, err
	}
	id := "vol-" + hashed(request.Name)
	unlock, err := c.lock(id)
	if err != nil {
		return nil, err
	}
	type answer struct {
		volume *csi.Volume
		err    error
	}
	// A copy may take longer than a request may. It goes on, and whoever asks again is told that it does, or gets the volume.
	answers := make(chan answer, 1)
	go func() {
		volume, err := c.create(context.WithoutCancel(ctx), id, request, from, options)
		unlock()
		answers <- answer{volume, err}
	}()
	select {
	case is := <-answers:
		if is.err != nil {
			return nil, is.err
		}
		return &csi.CreateVolumeResponse{Volume: is.volume}, nil
	case <-ctx.Done():
		return nil, status.FromContextError(ctx.Err()).Err()
	}
}

func (c *controller) create(ctx context.Context, id string, request *csi.CreateVolumeRequest, from *source, options []string) (*csi.Volume, error) {
	has, err := c.volume(ctx, id)
	if status.Code(err) == codes.NotFound {
		var size int64
		if size, err = c.wanted(ctx, request, from); err == nil {
			err = c.make(ctx, id, size, from, options)
		}
		if err == nil {
			has, err = c.volume(ctx, id)
		}
	}
	if err != nil {
		return nil, err
	}
	kept, err := c.notes(id)
	if err != nil {
		return nil, err
	}
	if !fits(has, request.CapacityRange) {
		return nil, status.Errorf(codes.AlreadyExists, "the volume %q is there with %d bytes, which are not what is asked for", request.Name, has)
	}
	if from == nil && kept.Source != "" || from != nil && kept.Source != from.id {
		return nil, status.Errorf(codes.AlreadyExists, "the volume %q is there with the source %q, which is not what is asked for", request.Name, kept.Source)
	}
	return c.described(id, has, kept), nil
}

// described is a volume in the words of the interface.
func (c *controller) described(id string, size int64, kept notes) *csi.Volume {
	return &csi.Volume{VolumeId: id, CapacityBytes: size, ContentSource: content(kept.Source), AccessibleTopology: []*csi.Topology{c.topology()}}
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
	release, err := c.unheld(request.VolumeId)
	if err != nil {
		return nil, err
	}
	defer release()
	attached, err := c.vsl.attached(ctx)
	if err != nil {
		return nil, err
	}
	listed, err := c.snapshots(ctx, request.VolumeId, attached)
	if err != nil {
		return nil, err
	}
	if len(listed) > 0 {
		return nil, status.Errorf(codes.FailedPrecondition, "%s has %d snapshots, which would go with it; delete them first", request.VolumeId, len(listed))
	}
	if err := c.vsl.detach(ctx, request.VolumeId); err != nil {
		return nil, err
	}
	if err := remove(c.path(request.VolumeId)); err != nil {
		return nil, err
	}
	return &csi.DeleteVolumeResponse{}, remove(c.notesPath(request.VolumeId))
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
	volumes, err := c.volumes()
	if err != nil {
		return nil, err
	}
	response := &csi.ListVolumesResponse{}
	for _, id := range volumes {
		if id < request.StartingToken {
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
		kept, err := c.notes(id)
		if err != nil {
			return nil, err
		}
		response.Entries = append(response.Entries, &csi.ListVolumesResponse_Entry{Volume: c.described(id, size, kept)})
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
	var words []string
	for name, value := range parameters {
		switch {
		case name == "overProvisioning":
			words = append(words, "--over-provisioning="+value)
		case !strings.HasPrefix(name, sidecarPrefix):
			return nil, status.Errorf(codes.InvalidArgument, "the parameter %q is not known; expected overProvisioning", name)
		}
	}
	return words, nil
}

// wanted is the size that a new volume gets. With a source it holds at least as much as that.
func (c *controller) wanted(ctx context.Context, request *csi.CreateVolumeRequest, from *source) (int64, error) {
	asked := request.CapacityRange
	size, least := asked.GetRequiredBytes(), int64(leastBytes)
	if from != nil {
		if err := c.look(ctx, request, from); err != nil {
			return 0, err
		}
		least = from.size
	} else if size == 0 {
		size = defaultBytes
		if limit := asked.GetLimitBytes(); limit > 0 && limit < size {
			size = limit / sectorBytes * sectorBytes
		}
	}
	size = max(least, (size+sectorBytes-1)/sectorBytes*sectorBytes)
	if !fits(size, asked) {
		return 0, status.Errorf(codes.OutOfRange, "%d bytes at most are asked for; the least that holds them is %d", asked.GetLimitBytes(), size)
	}
	return size, nil
}

// look finds the source of a volume, and how large it is.
func (c *controller) look(ctx context.Context, request *csi.CreateVolumeRequest, from *source) error {
	var err error
	from.size, err = c.volume(ctx, from.volume)
	if status.Code(err) == codes.NotFound && request.AccessibilityRequirements != nil {
		// Whoever says where the volume is to be can have it made on another node, where its source may be.
		return status.Errorf(codes.ResourceExhausted, "%s is not on the node %s, and volumes are copied where their source is", from.volume, c.nodeID)
	}
	if err == nil && from.name != "" {
		_, err = c.snapshot(ctx, from.volume, from.name)
	}
	return err
}

// hashed is a name of whatever length and letters as part of an identifier.
func hashed(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:8])
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
