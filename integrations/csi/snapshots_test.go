package main

import (
	"bytes"
	"context"
	"io"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

const mib = 1 << 20

// client is a driver with everything that a test asks of it.
type client struct {
	*testing.T
	ctx context.Context
	csi.ControllerClient
	csi.NodeClient
	csi.SnapshotMetadataClient
	driver *driver
	top    string
}

func connect(t *testing.T) *client {
	d, top := begin(t)
	connection, err := grpc.NewClient(serve(t, d, top), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close() })
	return &client{t, t.Context(), csi.NewControllerClient(connection), csi.NewNodeClient(connection), csi.NewSnapshotMetadataClient(connection), d, top}
}

func (c *client) done(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

func (c *client) refused(err error, code codes.Code) {
	c.Helper()
	if status.Code(err) != code {
		c.Errorf("expected %s, not %v", code, err)
	}
}

func capability(kind string) *csi.VolumeCapability {
	mode := &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER}
	if kind == "" {
		return &csi.VolumeCapability{AccessMode: mode, AccessType: &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}}
	}
	return &csi.VolumeCapability{AccessMode: mode, AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{FsType: kind}}}
}

func asked(name, kind string, size int64, from string) *csi.CreateVolumeRequest {
	return &csi.CreateVolumeRequest{
		Name: name, VolumeCapabilities: []*csi.VolumeCapability{capability(kind)},
		CapacityRange: &csi.CapacityRange{RequiredBytes: size}, VolumeContentSource: content(from),
	}
}

func (c *client) create(name, kind string, size int64, from string) string {
	c.Helper()
	made, err := c.CreateVolume(c.ctx, asked(name, kind, size, from))
	c.done(err)
	if made.Volume.CapacityBytes < size || content(from).String() != made.Volume.ContentSource.String() {
		c.Fatalf("made %v, where %d bytes of %q were asked for", made.Volume, size, from)
	}
	return made.Volume.VolumeId
}

func (c *client) cut(name, volume string) string {
	c.Helper()
	made, err := c.CreateSnapshot(c.ctx, &csi.CreateSnapshotRequest{Name: name, SourceVolumeId: volume})
	c.done(err)
	if !made.Snapshot.ReadyToUse || time.Since(made.Snapshot.CreationTime.AsTime()).Abs() > time.Minute {
		c.Fatalf("made %v", made.Snapshot)
	}
	return made.Snapshot.SnapshotId
}

// stage makes a volume usable: its mount point, or its block device.
func (c *client) stage(volume, kind string) string {
	c.Helper()
	at := filepath.Join(c.top, "staged", volume)
	_, err := c.NodeStageVolume(c.ctx, &csi.NodeStageVolumeRequest{VolumeId: volume, StagingTargetPath: at, VolumeCapability: capability(kind)})
	c.done(err)
	if kind == "" {
		at, err = c.driver.connected(volume)
		c.done(err)
	}
	return at
}

func (c *client) unstage(volume string) {
	c.Helper()
	_, err := c.NodeUnstageVolume(c.ctx, &csi.NodeUnstageVolumeRequest{VolumeId: volume, StagingTargetPath: filepath.Join(c.top, "staged", volume)})
	c.done(err)
}

func (c *client) delete(ids ...string) {
	c.Helper()
	for _, id := range ids {
		var err error
		if snapshotID.MatchString(id) {
			_, err = c.DeleteSnapshot(c.ctx, &csi.DeleteSnapshotRequest{SnapshotId: id})
		} else {
			_, err = c.DeleteVolume(c.ctx, &csi.DeleteVolumeRequest{VolumeId: id})
		}
		c.done(err)
	}
}

// attached are the volumes that the service has.
func (c *client) attached() []string {
	c.Helper()
	found, err := c.driver.vsl.attached(c.ctx)
	c.done(err)
	var names []string
	for name := range found {
		names = append(names, name)
	}
	return names
}

// holds are the bytes of an export.
func (c *client) holds(export string) []byte {
	c.Helper()
	file := filepath.Join(c.top, "image")
	_, err := tool(c.ctx, "nbdcopy", c.driver.uri(export), file)
	c.done(err)
	found, err := os.ReadFile(file)
	c.done(err)
	c.done(os.Remove(file))
	return found
}

// TestFiles follows files through snapshots and copies, with both file systems, while the source is in use.
func TestFiles(t *testing.T) {
	c := connect(t)
	for kind, least := range map[string]int64{"ext4": 64 * mib, "xfs": 320 * mib} {
		volume := c.create(kind, kind, least, "")
		at := c.stage(volume, kind)
		file := filepath.Join(at, "file")
		// Not synced: what was written before a snapshot is asked for is in it.
		c.done(os.WriteFile(file, []byte("monday"), 0o600))
		monday := c.cut("monday "+kind, volume)
		c.done(os.WriteFile(file, []byte("tuesday"), 0o600))
		before := c.create("of monday "+kind, kind, 2*least, monday)
		clone := c.create("clone "+kind, kind, least, volume)
		for copied, says := range map[string]string{before: "monday", clone: "tuesday"} {
			path := c.stage(copied, kind)
			found, err := os.ReadFile(filepath.Join(path, "file"))
			if err != nil || string(found) != says {
				t.Errorf("%s: %q, expected %q: %v", kind, found, says, err)
			}
			stats, err := c.NodeGetVolumeStats(c.ctx, &csi.NodeGetVolumeStatsRequest{VolumeId: copied, VolumePath: path})
			c.done(err)
			if total := stats.Usage[0].Total; copied == before && total < 2*least*3/4 {
				t.Errorf("%s: the file system has %d bytes on a volume of %d", kind, total, 2*least)
			}
			c.unstage(copied)
		}
		_, err := c.DeleteVolume(c.ctx, &csi.DeleteVolumeRequest{VolumeId: volume})
		c.refused(err, codes.FailedPrecondition)
		c.unstage(volume)
		_, err = c.DeleteVolume(c.ctx, &csi.DeleteVolumeRequest{VolumeId: volume})
		c.refused(err, codes.FailedPrecondition)
		// The service knows nothing of it now, and it is listed all the same.
		listed, err := c.ListSnapshots(c.ctx, &csi.ListSnapshotsRequest{SourceVolumeId: volume})
		c.done(err)
		if len(listed.Entries) != 1 || listed.Entries[0].Snapshot.SnapshotId != monday || len(c.attached()) != 0 {
			t.Errorf("%s: %v, attached: %v", kind, listed.Entries, c.attached())
		}
		c.delete(clone, monday, monday, volume, before)
	}
	nothingLeft(t, c.driver)
}

// TestRefused asks for what cannot be.
func TestRefused(t *testing.T) {
	c := connect(t)
	volume := c.create("volume", "", 64*mib, "")
	snapshot := c.cut("snapshot", volume)
	copied := c.create("copied", "", 0, snapshot)
	if again := c.create("copied", "", 0, snapshot); again != copied {
		t.Errorf("the same request made %s and %s", copied, again)
	}
	// What status and alerts call it.
	if label, err := tool(c.ctx, c.driver.vsl.program, "status", c.driver.path(copied), "--field", "label"); label != copied {
		t.Errorf("the label of %s is %q: %v", copied, label, err)
	}
	ask := func(name, from string, change func(*csi.CreateVolumeRequest)) error {
		request := asked(name, "", 0, from)
		if change != nil {
			change(request)
		}
		_, err := c.CreateVolume(c.ctx, request)
		return err
	}
	gone := "vol-0123456789abcdef"
	elsewhere := &csi.Topology{Segments: map[string]string{topologyKey: "elsewhere"}}
	c.refused(ask("copied", volume, nil), codes.AlreadyExists)
	c.refused(ask("copied", "", nil), codes.AlreadyExists)
	c.refused(ask("volume", snapshot, nil), codes.AlreadyExists)
	c.refused(ask("new", volume+"@nothing", nil), codes.NotFound)
	c.refused(ask("new", gone, nil), codes.NotFound)
	c.refused(ask("new", gone+"@snap", func(it *csi.CreateVolumeRequest) {
		it.AccessibilityRequirements = &csi.TopologyRequirement{Requisite: []*csi.Topology{c.driver.topology()}}
	}), codes.ResourceExhausted)
	c.refused(ask("new", "", func(it *csi.CreateVolumeRequest) {
		it.AccessibilityRequirements = &csi.TopologyRequirement{Requisite: []*csi.Topology{elsewhere}}
	}), codes.ResourceExhausted)
	c.refused(ask("new", snapshot, func(it *csi.CreateVolumeRequest) {
		it.CapacityRange = &csi.CapacityRange{LimitBytes: 32 * mib}
	}), codes.OutOfRange)
	_, err := c.CreateSnapshot(c.ctx, &csi.CreateSnapshotRequest{Name: "snapshot", SourceVolumeId: copied})
	c.refused(err, codes.AlreadyExists)
	_, err = c.CreateSnapshot(c.ctx, &csi.CreateSnapshotRequest{Name: "other", SourceVolumeId: gone})
	c.refused(err, codes.NotFound)
	_, err = c.CreateSnapshot(c.ctx, &csi.CreateSnapshotRequest{Name: "other", SourceVolumeId: volume, Parameters: map[string]string{"x": "y"}})
	c.refused(err, codes.InvalidArgument)
	// A hold is the service's own, and a snapshot that somebody made by hand is one like the others.
	release, err := c.driver.hold(c.ctx, volume)
	c.done(err)
	c.done(c.driver.vsl.run(c.ctx, nil, "snapshot", "create", volume, "by-hand"))
	c.done(c.driver.vsl.run(c.ctx, nil, "snapshot", "hold", volume, "by-hand"))
	byHand := volume + "@by-hand"
	_, err = c.DeleteSnapshot(c.ctx, &csi.DeleteSnapshotRequest{SnapshotId: byHand})
	c.refused(err, codes.FailedPrecondition)
	listed, err := c.ListSnapshots(c.ctx, &csi.ListSnapshotsRequest{SnapshotId: byHand})
	c.done(err)
	if len(listed.Entries) != 1 {
		t.Errorf("listed: %v", listed.Entries)
	}
	c.done(c.driver.vsl.run(c.ctx, nil, "snapshot", "release", volume, "by-hand"))
	release()
	c.delete(byHand, snapshot, volume, copied)
	nothingLeft(t, c.driver)
}

// TestCutOff asks for a copy and does not wait for it, and leaves copies as a driver does that is killed.
func TestCutOff(t *testing.T) {
	c := connect(t)
	volume := c.create("volume", "", 256*mib, "")
	written := make([]byte, 64*mib)
	rand.New(rand.NewSource(1)).Read(written)
	block := c.stage(volume, "")
	c.done(os.WriteFile(block, written, 0))
	snapshot := c.cut("snapshot", volume)
	short, cancel := context.WithTimeout(c.ctx, 20*time.Millisecond)
	defer cancel()
	_, err := c.CreateVolume(short, asked("copied", "", 0, snapshot))
	c.refused(err, codes.DeadlineExceeded)
	// The pod goes meanwhile, and nothing that is read can be deleted.
	_, err = c.CreateVolume(c.ctx, asked("copied", "", 0, snapshot))
	c.refused(err, codes.Aborted)
	c.unstage(volume)
	_, err = c.DeleteSnapshot(c.ctx, &csi.DeleteSnapshotRequest{SnapshotId: snapshot})
	c.refused(err, codes.FailedPrecondition)
	var copied string
	for deadline := time.Now().Add(time.Minute); copied == ""; time.Sleep(pause) {
		made, err := c.CreateVolume(c.ctx, asked("copied", "", 0, snapshot))
		if status.Code(err) != codes.Aborted || time.Now().After(deadline) {
			c.done(err)
			copied = made.Volume.VolumeId
		}
	}
	c.stage(copied, "")
	if found := c.holds(copied); !bytes.Equal(found[:len(written)], written) || len(found) != 256*mib {
		t.Error("the copy holds something else")
	}
	c.unstage(copied)
	if names := c.attached(); len(names) != 0 {
		t.Errorf("attached: %v", names)
	}
	// What a killed driver leaves: a device that somebody fills, and a snapshot for a clone.
	left := unfinished + hashed("left")
	c.done(c.driver.vsl.run(c.ctx, nil, "create", c.driver.path(left), "--size", "64MiB"))
	c.done(c.driver.handOver(c.driver.path(left)))
	c.done(c.driver.vsl.attach(c.ctx, left, c.driver.path(left), "--once"))
	filling := exec.Command("nbdcopy", "-", c.driver.uri(left))
	input, err := filling.StdinPipe()
	c.done(err)
	c.done(filling.Start())
	release, err := c.driver.hold(c.ctx, volume)
	c.done(err)
	_, err = c.driver.change(c.ctx, "create", volume, clonePrefix+hashed("left"))
	c.done(err)
	release()
	c.done(c.driver.sweep(c.ctx))
	input.Close()
	filling.Wait()
	c.delete(snapshot, volume, copied)
	nothingLeft(t, c.driver)
}

// received gathers the ranges of a stream.
func (c *client) received(most int, next func() (csi.BlockMetadataType, int64, []*csi.BlockMetadata, error)) []*csi.BlockMetadata {
	c.Helper()
	var found []*csi.BlockMetadata
	for messages := 0; ; messages++ {
		kind, size, ranges, err := next()
		if err == io.EOF && messages > 0 {
			return found
		}
		c.done(err)
		if kind != csi.BlockMetadataType_VARIABLE_LENGTH || size != 64*mib || most > 0 && len(ranges) > most {
			c.Fatalf("a message of %s with %d ranges, of %d bytes", kind, len(ranges), size)
		}
		found = append(found, ranges...)
	}
}

func (c *client) allocated(id string, from int64, most int) []*csi.BlockMetadata {
	stream, err := c.GetMetadataAllocated(c.ctx, &csi.GetMetadataAllocatedRequest{SnapshotId: id, StartingOffset: from, MaxResults: int32(most)})
	c.done(err)
	return c.received(most, func() (csi.BlockMetadataType, int64, []*csi.BlockMetadata, error) {
		it, err := stream.Recv()
		return it.GetBlockMetadataType(), it.GetVolumeCapacityBytes(), it.GetBlockMetadata(), err
	})
}

func (c *client) delta(base, target string, from int64, most int) []*csi.BlockMetadata {
	stream, err := c.GetMetadataDelta(c.ctx, &csi.GetMetadataDeltaRequest{BaseSnapshotId: base, TargetSnapshotId: target, StartingOffset: from, MaxResults: int32(most)})
	c.done(err)
	return c.received(most, func() (csi.BlockMetadataType, int64, []*csi.BlockMetadata, error) {
		it, err := stream.Recv()
		return it.GetBlockMetadataType(), it.GetVolumeCapacityBytes(), it.GetBlockMetadata(), err
	})
}

// TestMetadata restores snapshots as a backup does: from what is allocated, and from what changed.
func TestMetadata(t *testing.T) {
	c := connect(t)
	volume := c.create("volume", "", 64*mib, "")
	random := rand.New(rand.NewSource(1))
	block, err := os.OpenFile(c.stage(volume, ""), os.O_RDWR, 0)
	c.done(err)
	var snapshots []string
	var images [][]byte
	// Fewer ranges than a message has, then more than the service lists at once; in the end parts are zeros again.
	for _, writes := range []int64{300, 5000} {
		for at := range writes {
			sector := make([]byte, 4096)
			random.Read(sector)
			_, err := block.WriteAt(sector, at*8192)
			c.done(err)
		}
		c.done(block.Sync())
		if len(snapshots) > 0 {
			_, err := tool(c.ctx, "blkdiscard", "--force", "--offset", "1048576", "--length", "2097152", block.Name())
			c.done(err)
		}
		snapshots = append(snapshots, c.cut(strings.Repeat("x", 1+len(snapshots)), volume))
		images = append(images, c.holds(snapshots[len(snapshots)-1]))
	}
	c.done(block.Close())
	empty := make([]byte, 64*mib)
	for name, it := range map[string]struct {
		base, target []byte
		ask          func(from int64, most int) []*csi.BlockMetadata
	}{
		"the first":  {empty, images[0], func(from int64, most int) []*csi.BlockMetadata { return c.allocated(snapshots[0], from, most) }},
		"the second": {empty, images[1], func(from int64, most int) []*csi.BlockMetadata { return c.allocated(snapshots[1], from, most) }},
		"what changed": {images[0], images[1], func(from int64, most int) []*csi.BlockMetadata {
			return c.delta(snapshots[0], snapshots[1], from, most)
		}},
	} {
		whole := it.ask(0, 0)
		restored := slices.Clone(it.base)
		end := int64(0)
		for _, piece := range whole {
			if piece.SizeBytes <= 0 || piece.ByteOffset < end {
				t.Fatalf("%s: %v after a range that ends at %d", name, piece, end)
			}
			end = piece.ByteOffset + piece.SizeBytes
			copy(restored[piece.ByteOffset:end], it.target[piece.ByteOffset:end])
		}
		if !bytes.Equal(restored, it.target) {
			t.Errorf("%s: %d ranges leave something out", name, len(whole))
		}
		// What was cut off goes on behind the last range that arrived.
		at := len(whole) / 2
		rest := it.ask(whole[at-1].ByteOffset+whole[at-1].SizeBytes, 7)
		if len(rest) != len(whole)-at || rest[0].String() != whole[at].String() {
			t.Errorf("%s: %d ranges from the middle of %d on, the first of them %v", name, len(rest), len(whole), rest[0])
		}
	}
	if none := c.delta(snapshots[1], snapshots[1], 0, 0); len(none) != 0 {
		t.Errorf("a snapshot differs from itself in %v", none)
	}
	for code, request := range map[codes.Code]*csi.GetMetadataDeltaRequest{
		codes.InvalidArgument: {BaseSnapshotId: snapshots[1], TargetSnapshotId: snapshots[0]},
		codes.NotFound:        {BaseSnapshotId: snapshots[0], TargetSnapshotId: volume + "@nothing"},
		codes.OutOfRange:      {BaseSnapshotId: snapshots[0], TargetSnapshotId: snapshots[1], StartingOffset: 64*mib + 1},
	} {
		stream, err := c.GetMetadataDelta(c.ctx, request)
		c.done(err)
		_, err = stream.Recv()
		c.refused(err, code)
	}
	c.unstage(volume)
	c.delete(append(snapshots, volume)...)
	nothingLeft(t, c.driver)
}
