package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// The first one is what a volume gets that names none.
var fileSystems = []string{"ext4", "xfs"}

// node makes volumes usable on this machine: attached, connected as a block device, mounted.
type node struct {
	csi.UnimplementedNodeServer
	*driver
}

func (n *node) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: n.nodeID, AccessibleTopology: n.topology()}, nil
}

func (n *node) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	var capabilities []*csi.NodeServiceCapability
	for _, kind := range []csi.NodeServiceCapability_RPC_Type{
		csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME,
		csi.NodeServiceCapability_RPC_GET_VOLUME_STATS,
		csi.NodeServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER,
	} {
		rpc := &csi.NodeServiceCapability_Rpc{Rpc: &csi.NodeServiceCapability_RPC{Type: kind}}
		capabilities = append(capabilities, &csi.NodeServiceCapability{Type: rpc})
	}
	return &csi.NodeGetCapabilitiesResponse{Capabilities: capabilities}, nil
}

func (n *node) NodeStageVolume(ctx context.Context, request *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse, error) {
	if request.StagingTargetPath == "" {
		return nil, status.Error(codes.InvalidArgument, "a staging path is missing")
	}
	unlock, err := n.take(ctx, request.VolumeId, request.VolumeCapability)
	if err != nil {
		return nil, err
	}
	defer unlock()
	block, err := n.connect(ctx, request.VolumeId)
	if err != nil {
		return nil, err
	}
	asked := request.VolumeCapability.GetMount()
	if asked == nil || isMounted(request.StagingTargetPath) {
		return &csi.NodeStageVolumeResponse{}, nil
	}
	kind := asked.FsType
	if kind == "" {
		kind = fileSystems[0]
	}
	if err := makeFileSystem(ctx, block, kind); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(request.StagingTargetPath, 0o750); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	// Freed blocks are trimmed, which keeps the groomer's work small.
	flags := append([]string{"discard"}, asked.MountFlags...)
	kept, err := n.notes(request.VolumeId)
	if err != nil {
		return nil, err
	}
	if kept.Source != "" && kind == "xfs" {
		// A copy has the UUID of its source, which may be mounted here too.
		flags = append(flags, "nouuid")
	}
	// ext4 is made larger before it is mounted, xfs can only be afterwards.
	if kept.Grow && kind == "ext4" {
		err = growExt4(ctx, block)
	}
	if err == nil {
		err = internal(tool(ctx, "mount", "-t", kind, "-o", strings.Join(flags, ","), block, request.StagingTargetPath))
	}
	if err == nil && kept.Grow && kind == "xfs" && !slices.Contains(flags, "ro") {
		// Where it fails the file system works, only smaller: the next attempt finds it mounted.
		err = internal(tool(ctx, "xfs_growfs", request.StagingTargetPath))
	}
	if err == nil && kept.Grow {
		err = n.grown(request.VolumeId)
	}
	return &csi.NodeStageVolumeResponse{}, err
}

// growExt4 has a file system fill its volume, which may be larger than what it was copied from. It must be checked before.
func growExt4(ctx context.Context, block string) error {
	_, err := tool(ctx, "e2fsck", "-f", "-p", block)
	// 1: something was put right, as after a power cut.
	if err != nil && exitCode(err) != 1 {
		return status.Error(codes.Internal, err.Error())
	}
	return internal(tool(ctx, "resize2fs", block))
}

// grown notes that a file system fills its volume.
func (d *driver) grown(id string) error {
	use := d.use(id)
	use.Lock()
	defer use.Unlock()
	kept, err := d.notes(id)
	if err != nil {
		return err
	}
	kept.Grow = false
	return d.note(id, kept)
}

func (n *node) NodeUnstageVolume(ctx context.Context, request *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	if request.VolumeId == "" || request.StagingTargetPath == "" {
		return nil, status.Error(codes.InvalidArgument, "a volume's identifier and staging path are needed")
	}
	if _, err := n.volume(ctx, request.VolumeId); err != nil {
		return nil, err
	}
	unlock, err := n.lock(request.VolumeId)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if isMounted(request.StagingTargetPath) {
		if err := internal(tool(ctx, "umount", request.StagingTargetPath)); err != nil {
			return nil, err
		}
	}
	return &csi.NodeUnstageVolumeResponse{}, n.disconnect(ctx, request.VolumeId)
}

func (n *node) NodePublishVolume(ctx context.Context, request *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	if request.TargetPath == "" {
		return nil, status.Error(codes.InvalidArgument, "a target path is missing")
	}
	unlock, err := n.take(ctx, request.VolumeId, request.VolumeCapability)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if isMounted(request.TargetPath) {
		return &csi.NodePublishVolumeResponse{}, nil
	}
	if elsewhere := n.publishedElsewhere(request); elsewhere != "" && isSingleWriter(request.VolumeCapability) {
		return nil, status.Errorf(codes.FailedPrecondition, "%s is published at %s, and for a single writer", request.VolumeId, elsewhere)
	}
	source := request.StagingTargetPath
	if request.VolumeCapability.GetBlock() != nil {
		source, err = n.connected(request.VolumeId)
	} else if source == "" || !isMounted(source) {
		err = status.Errorf(codes.FailedPrecondition, "%s is not staged at %q", request.VolumeId, source)
	}
	if err == nil {
		err = makeTarget(request.TargetPath, request.VolumeCapability.GetBlock() != nil)
	}
	if err == nil {
		err = internal(tool(ctx, "mount", "--bind", source, request.TargetPath))
	}
	if err == nil && request.Readonly {
		err = internal(tool(ctx, "mount", "-o", "remount,bind,ro", request.TargetPath))
	}
	return &csi.NodePublishVolumeResponse{}, err
}

func (n *node) NodeUnpublishVolume(ctx context.Context, request *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	if request.VolumeId == "" || request.TargetPath == "" {
		return nil, status.Error(codes.InvalidArgument, "a volume's identifier and target path are needed")
	}
	if _, err := n.volume(ctx, request.VolumeId); err != nil {
		return nil, err
	}
	if isMounted(request.TargetPath) {
		if err := internal(tool(ctx, "umount", request.TargetPath)); err != nil {
			return nil, err
		}
	}
	// Only an empty directory or file of ours can be there: whatever holds more stays.
	if err := os.Remove(request.TargetPath); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &csi.NodeUnpublishVolumeResponse{}, nil
}

func (n *node) NodeGetVolumeStats(ctx context.Context, request *csi.NodeGetVolumeStatsRequest) (*csi.NodeGetVolumeStatsResponse, error) {
	if request.VolumeId == "" || request.VolumePath == "" {
		return nil, status.Error(codes.InvalidArgument, "a volume's identifier and path are needed")
	}
	size, err := n.volume(ctx, request.VolumeId)
	if err != nil {
		return nil, err
	}
	if !isMounted(request.VolumePath) {
		return nil, status.Errorf(codes.NotFound, "%s is not mounted at %s", request.VolumeId, request.VolumePath)
	}
	if info, err := os.Stat(request.VolumePath); err == nil && !info.IsDir() {
		return &csi.NodeGetVolumeStatsResponse{Usage: []*csi.VolumeUsage{{Unit: csi.VolumeUsage_BYTES, Total: size}}}, nil
	}
	var found syscall.Statfs_t
	if err := syscall.Statfs(request.VolumePath, &found); err != nil {
		return nil, status.Errorf(codes.Internal, "%s: %v", request.VolumePath, err)
	}
	bytes := func(blocks uint64) int64 { return int64(blocks) * found.Bsize }
	return &csi.NodeGetVolumeStatsResponse{Usage: []*csi.VolumeUsage{
		{Unit: csi.VolumeUsage_BYTES, Total: bytes(found.Blocks), Available: bytes(found.Bavail), Used: bytes(found.Blocks - found.Bfree)},
		{Unit: csi.VolumeUsage_INODES, Total: int64(found.Files), Available: int64(found.Ffree), Used: int64(found.Files - found.Ffree)},
	}}, nil
}

// take checks what a request says of a volume, and takes the volume for it.
func (n *node) take(ctx context.Context, id string, capability *csi.VolumeCapability) (func(), error) {
	if id == "" || capability == nil {
		return nil, status.Error(codes.InvalidArgument, "a volume's identifier and capability are needed")
	}
	if why := refusedOne(capability); why != "" {
		return nil, status.Error(codes.InvalidArgument, why)
	}
	if _, err := n.volume(ctx, id); err != nil {
		return nil, err
	}
	return n.lock(id)
}

// connect attaches a volume and makes it a block device, unless it is one.
func (n *node) connect(ctx context.Context, id string) (string, error) {
	if block, err := n.connected(id); err == nil {
		return block, nil
	}
	release, err := n.hold(ctx, id)
	if err != nil {
		return "", err
	}
	// With its record written it stays attached.
	defer release()
	var said struct {
		Path string `json:"path"`
	}
	if err := n.vsl.run(ctx, &said, "connect", id); err != nil {
		return "", err
	}
	if err := os.WriteFile(n.record(id), []byte(said.Path), 0o600); err != nil {
		return "", status.Error(codes.Internal, err.Error())
	}
	return said.Path, nil
}

// connected is the block device of a volume that was connected. The record lies in memory, so it goes with a reboot as the device does.
func (d *driver) connected(id string) (string, error) {
	block, err := os.ReadFile(d.record(id))
	if err == nil {
		_, err = os.Stat(string(block))
	}
	if err != nil {
		return "", status.Errorf(codes.FailedPrecondition, "%s is not connected: %v", id, err)
	}
	return string(block), nil
}

// disconnect undoes connect, as far as it was done.
func (n *node) disconnect(ctx context.Context, id string) error {
	if _, err := os.Stat(n.record(id)); err == nil {
		if err := n.vsl.run(ctx, nil, "disconnect", id); err != nil && status.Code(err) != codes.NotFound {
			return err
		}
		if err := os.Remove(n.record(id)); err != nil {
			return status.Error(codes.Internal, err.Error())
		}
	}
	use := n.use(id)
	use.Lock()
	defer use.Unlock()
	return n.settle(ctx, id, use)
}

func (d *driver) record(id string) string { return filepath.Join(d.run, id) }

// makeFileSystem makes one where there is nothing. What is there is never overwritten.
func makeFileSystem(ctx context.Context, block, kind string) error {
	found, err := tool(ctx, "blkid", "--probe", "--match-tag", "TYPE", "--output", "value", block)
	// 2: there is nothing that blkid knows.
	if err != nil && exitCode(err) == 2 && found == "" {
		return internal(tool(ctx, "mkfs."+kind, "-q", block))
	}
	if err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	if found != kind {
		return status.Errorf(codes.FailedPrecondition, "the volume holds %s, and %s is asked for", found, kind)
	}
	return nil
}

// makeTarget makes what a volume is mounted onto.
func makeTarget(path string, file bool) error {
	err := os.MkdirAll(filepath.Dir(path), 0o750)
	if err == nil && file {
		var made *os.File
		if made, err = os.OpenFile(path, os.O_CREATE, 0o640); err == nil {
			err = made.Close()
		}
	} else if err == nil {
		err = os.MkdirAll(path, 0o750)
	}
	if err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	return nil
}

func isSingleWriter(capability *csi.VolumeCapability) bool {
	return capability.GetAccessMode().GetMode() == csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER
}

// publishedElsewhere is where a volume is mounted beside its staging path and the target that is asked for; nothing if it is not.
func (n *node) publishedElsewhere(request *csi.NodePublishVolumeRequest) string {
	block, err := n.connected(request.VolumeId)
	if err != nil {
		return ""
	}
	for _, it := range mounts() {
		// A file system has the block device as its source; a block device is a file of the kernel's own file system, mounted.
		is := it.source == block || it.root == "/"+filepath.Base(block)
		if is && it.at != escaped(request.StagingTargetPath) && it.at != escaped(request.TargetPath) {
			return it.at
		}
	}
	return ""
}

// mount is a line of the kernel's list.
type mount struct{ root, at, source string }

func mounts() []mount {
	list, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	var found []mount
	for line := range strings.Lines(string(list)) {
		before, after, _ := strings.Cut(line, " - ")
		of, behind := strings.Fields(before), strings.Fields(after)
		if len(of) > 4 && len(behind) > 1 {
			found = append(found, mount{of[3], of[4], behind[1]})
		}
	}
	return found
}

// escaped is a path as the kernel writes it: what would break its lines is a number.
func escaped(path string) string {
	return strings.NewReplacer("\\", `\134`, " ", `\040`, "\t", `\011`, "\n", `\012`).Replace(filepath.Clean(path))
}

// unescaped undoes escaped.
func unescaped(path string) string {
	return strings.NewReplacer(`\134`, "\\", `\040`, " ", `\011`, "\t", `\012`, "\n").Replace(path)
}

// isMounted says whether something is mounted at a path, without asking what is mounted, which may hang.
func isMounted(path string) bool {
	return slices.ContainsFunc(mounts(), func(it mount) bool { return it.at == escaped(path) })
}

// internal turns what a tool came to into an answer.
func internal(_ string, err error) error {
	if err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	return nil
}
