package main

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// A snapshot's identifier is its volume's, an @ and its name: the name of its export too. Those that were made by hand have one as well.
var snapshotID = regexp.MustCompile(`^(vol-[0-9a-f]{16})@([A-Za-z0-9._:+-]{1,63})$`)

// What the driver calls the snapshots that it makes only to copy a volume, before the new volume's hash.
const clonePrefix = "clone-"

// notes are what the driver keeps of a volume beside its file, and goes with it.
type notes struct {
	// What the volume was copied from: a snapshot's identifier or a volume's.
	Source string `json:"source,omitempty"`
	// Whether it is larger than that, and its file system does not fill it yet.
	Grow bool `json:"grow,omitempty"`
	// As they were when the driver last changed them, or detached the volume: only the snapshots of attached devices can be listed.
	Snapshots []snapshot `json:"snapshots,omitempty"`
}

func (d *driver) notesPath(id string) string { return filepath.Join(d.directory, id+".json") }

func (d *driver) notes(id string) (notes, error) {
	var found notes
	text, err := os.ReadFile(d.notesPath(id))
	if errors.Is(err, fs.ErrNotExist) {
		return found, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &found)
	}
	if err != nil {
		return found, status.Errorf(codes.Internal, "%s: %v", d.notesPath(id), err)
	}
	return found, nil
}

// note writes the notes of a volume. Whoever reads them meanwhile finds the old ones or the new ones, and so does a power cut.
func (d *driver) note(id string, kept notes) error {
	text, err := json.Marshal(kept)
	if err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	path := d.notesPath(id)
	file, err := os.OpenFile(path+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = file.Write(text)
		err = errors.Join(err, file.Sync(), file.Close())
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		return status.Errorf(codes.Internal, "%s: %v", path, err)
	}
	return nil
}

// noteSnapshots notes the snapshots of a volume, which is in the caller's use.
func (d *driver) noteSnapshots(id string, listed []snapshot) error {
	kept, err := d.notes(id)
	if err != nil || slices.Equal(kept.Snapshots, listed) {
		return err
	}
	kept.Snapshots = listed
	return d.note(id, kept)
}

// change makes or deletes a snapshot of a volume that is attached, and lists what there is then.
func (d *driver) change(ctx context.Context, deed, id, name string) ([]snapshot, error) {
	use := d.use(id)
	use.Lock()
	defer use.Unlock()
	if err := d.vsl.run(ctx, nil, "snapshot", deed, id, name); err != nil {
		return nil, err
	}
	listed, err := d.vsl.snapshots(ctx, id)
	if err != nil {
		return nil, err
	}
	return listed, d.noteSnapshots(id, listed)
}

// snapshots lists those of a volume: those that the service knows, if it has attached the volume.
func (d *driver) snapshots(ctx context.Context, id string, attached map[string]device) ([]snapshot, error) {
	if _, is := attached[id]; is {
		// It may have been detached in this moment, and its notes written.
		if listed, err := d.vsl.snapshots(ctx, id); status.Code(err) != codes.NotFound {
			return listed, err
		}
	}
	kept, err := d.notes(id)
	return kept.Snapshots, err
}

// snapshot is one of a volume of this node.
func (d *driver) snapshot(ctx context.Context, id, name string) (snapshot, error) {
	missing := status.Errorf(codes.NotFound, "there is no snapshot %q of the volume %q on this node", name, id)
	if _, err := os.Stat(d.path(id)); err != nil {
		return snapshot{}, missing
	}
	attached, err := d.vsl.attached(ctx)
	if err != nil {
		return snapshot{}, err
	}
	listed, err := d.snapshots(ctx, id, attached)
	if err != nil {
		return snapshot{}, err
	}
	if found := find(listed, name); found != nil {
		return *found, nil
	}
	return snapshot{}, missing
}

// split takes an identifier apart: the volume's, and the snapshot's name.
func split(id string) (volume, name string, is bool) {
	parts := snapshotID.FindStringSubmatch(id)
	if parts == nil {
		return "", "", false
	}
	return parts[1], parts[2], true
}

func find(listed []snapshot, name string) *snapshot {
	at := slices.IndexFunc(listed, func(it snapshot) bool { return it.Name == name })
	if at < 0 {
		return nil
	}
	return &listed[at]
}

func (c *controller) CreateSnapshot(ctx context.Context, request *csi.CreateSnapshotRequest) (*csi.CreateSnapshotResponse, error) {
	if request.Name == "" || request.SourceVolumeId == "" {
		return nil, status.Error(codes.InvalidArgument, "a snapshot needs a name and the identifier of a volume")
	}
	for name := range request.Parameters {
		if !strings.HasPrefix(name, sidecarPrefix) {
			return nil, status.Errorf(codes.InvalidArgument, "the parameter %q is not known; snapshots take none", name)
		}
	}
	id := request.SourceVolumeId
	size, err := c.volume(ctx, id)
	if err != nil {
		return nil, err
	}
	name := "snap-" + hashed(request.Name)
	unlock, err := c.lock(name)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := c.taken(id, name); err != nil {
		return nil, err
	}
	made, err := c.cut(ctx, id, name)
	if err != nil {
		return nil, err
	}
	return &csi.CreateSnapshotResponse{Snapshot: snapshotOf(id, made, size)}, nil
}

// cut makes a snapshot of a volume, unless it has it.
func (c *controller) cut(ctx context.Context, id, name string) (snapshot, error) {
	release, err := c.hold(ctx, id)
	if err != nil {
		return snapshot{}, err
	}
	defer release()
	listed, err := c.vsl.snapshots(ctx, id)
	if err != nil {
		return snapshot{}, err
	}
	if made := find(listed, name); made != nil {
		return *made, nil
	}
	// What programs have written is to be in it, also where the kernel has not sent it on yet.
	if err := c.sync(ctx, id); err != nil {
		return snapshot{}, err
	}
	listed, err = c.change(ctx, "create", id, name)
	// There are too many, or no room is left.
	if status.Code(err) == codes.FailedPrecondition {
		return snapshot{}, status.Error(codes.ResourceExhausted, status.Convert(err).Message())
	}
	if err != nil {
		return snapshot{}, err
	}
	made := find(listed, name)
	if made == nil {
		return snapshot{}, status.Errorf(codes.Internal, "%s: the snapshot %s was made and is not listed", id, name)
	}
	return *made, nil
}

// taken says whether another volume has a snapshot of this name. The notes tell, since the driver made every snapshot with such a name.
func (c *controller) taken(id, name string) error {
	volumes, err := c.volumes()
	if err != nil {
		return err
	}
	for _, other := range volumes {
		kept, err := c.notes(other)
		if err != nil {
			return err
		}
		if other != id && find(kept.Snapshots, name) != nil {
			return status.Errorf(codes.AlreadyExists, "the snapshot %s is there, of the volume %s instead of %s", name, other, id)
		}
	}
	return nil
}

// sync has the kernel send on what was written to a volume.
func (d *driver) sync(ctx context.Context, id string) error {
	block, err := d.connected(id)
	if err != nil {
		return nil
	}
	for _, it := range mounts() {
		if it.source == block {
			return internal(tool(ctx, "sync", "--file-system", unescaped(it.at)))
		}
	}
	return internal(tool(ctx, "sync", block))
}

func (c *controller) DeleteSnapshot(ctx context.Context, request *csi.DeleteSnapshotRequest) (*csi.DeleteSnapshotResponse, error) {
	if request.SnapshotId == "" {
		return nil, status.Error(codes.InvalidArgument, "a snapshot's identifier is missing")
	}
	id, name, is := split(request.SnapshotId)
	if !is {
		return &csi.DeleteSnapshotResponse{}, nil
	}
	unlock, err := c.lock(name)
	if err != nil {
		return nil, err
	}
	defer unlock()
	release, err := c.unheld(request.SnapshotId)
	if err != nil {
		return nil, err
	}
	defer release()
	_, err = c.snapshot(ctx, id, name)
	if status.Code(err) == codes.NotFound {
		return &csi.DeleteSnapshotResponse{}, nil
	}
	if err != nil {
		return nil, err
	}
	return &csi.DeleteSnapshotResponse{}, c.drop(ctx, id, name)
}

func (c *controller) ListSnapshots(ctx context.Context, request *csi.ListSnapshotsRequest) (*csi.ListSnapshotsResponse, error) {
	// As with volumes, a token is the identifier that comes next.
	if request.StartingToken != "" && !snapshotID.MatchString(request.StartingToken) {
		return nil, status.Errorf(codes.Aborted, "%q is no token of this driver", request.StartingToken)
	}
	volumes, err := c.volumes()
	if err != nil {
		return nil, err
	}
	attached, err := c.vsl.attached(ctx)
	if err != nil {
		return nil, err
	}
	of, _, _ := split(request.SnapshotId)
	response := &csi.ListSnapshotsResponse{}
	for _, id := range volumes {
		if request.SnapshotId != "" && id != of || request.SourceVolumeId != "" && id != request.SourceVolumeId {
			continue
		}
		listed, err := c.snapshots(ctx, id, attached)
		if err != nil {
			return nil, err
		}
		if len(listed) == 0 {
			continue
		}
		size, err := c.volume(ctx, id)
		if status.Code(err) == codes.NotFound {
			continue
		}
		if err != nil {
			return nil, err
		}
		slices.SortFunc(listed, func(one, other snapshot) int { return strings.Compare(one.Name, other.Name) })
		for _, it := range listed {
			found := snapshotOf(id, it, size)
			if found.SnapshotId < request.StartingToken || request.SnapshotId != "" && found.SnapshotId != request.SnapshotId {
				continue
			}
			if request.MaxEntries > 0 && len(response.Entries) == int(request.MaxEntries) {
				response.NextToken = found.SnapshotId
				return response, nil
			}
			response.Entries = append(response.Entries, &csi.ListSnapshotsResponse_Entry{Snapshot: found})
		}
	}
	return response, nil
}

// snapshotOf is a snapshot in the words of the interface. A snapshot is ready as soon as it is made.
func snapshotOf(id string, it snapshot, size int64) *csi.Snapshot {
	made := timestamppb.New(it.Created)
	return &csi.Snapshot{SnapshotId: id + "@" + it.Name, SourceVolumeId: id, SizeBytes: size, CreationTime: made, ReadyToUse: true}
}
