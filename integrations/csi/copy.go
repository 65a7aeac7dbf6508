package main

import (
	"context"
	"errors"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// A volume that is being filled, before its hash. It gets its own name when it holds everything.
const unfinished = "new-"

// use is who needs a volume, or a snapshot, beside the node.
type use struct {
	sync.Mutex
	holds int
}

func (d *driver) use(id string) *use {
	it, _ := d.uses.LoadOrStore(id, &use{})
	return it.(*use)
}

// take holds it once begin has ended well, until the answer is called, which ends with end.
func (u *use) take(begin func() error, end func()) (func(), error) {
	u.Lock()
	defer u.Unlock()
	if err := begin(); err != nil {
		return nil, err
	}
	u.holds++
	return func() {
		u.Lock()
		defer u.Unlock()
		u.holds--
		end()
	}, nil
}

// unheld locks what is to be deleted, so that nobody begins to read it, until the answer is called.
func (d *driver) unheld(id string) (func(), error) {
	use := d.use(id)
	use.Lock()
	if use.holds > 0 {
		use.Unlock()
		return nil, status.Errorf(codes.FailedPrecondition, "%s is being read; delete it afterwards", id)
	}
	return use.Unlock, nil
}

// hold attaches a volume and keeps it attached until the answer is called.
func (d *driver) hold(ctx context.Context, id string) (func(), error) {
	use := d.use(id)
	return use.take(func() error { return d.vsl.attach(ctx, id, d.path(id)) }, func() {
		if err := d.settle(context.WithoutCancel(ctx), id, use); err != nil {
			// Whoever uses it next, or deletes it, finds it attached, which does no harm.
			log.Printf("%s stays attached: %v", id, err)
		}
	})
}

// read holds a snapshot, so that it is not deleted meanwhile, and its volume.
func (d *driver) read(ctx context.Context, id, name string) (func(), error) {
	var release func()
	hold := func() (err error) {
		release, err = d.hold(ctx, id)
		return err
	}
	return d.use(id+"@"+name).take(hold, func() { release() })
}

// settle detaches a volume that nobody needs. Its use is locked.
func (d *driver) settle(ctx context.Context, id string, use *use) error {
	if _, err := os.Stat(d.record(id)); err == nil || use.holds > 0 {
		return nil
	}
	listed, err := d.vsl.snapshots(ctx, id)
	if status.Code(err) == codes.NotFound {
		// It is not attached.
		return nil
	}
	if err == nil {
		err = d.noteSnapshots(id, listed)
	}
	if err != nil {
		return err
	}
	// The kernel's last connection may end a moment after its block device, and a device with clients is not detached.
	return retry(ctx, func() error { return d.vsl.detach(ctx, id) })
}

// source is what a volume is to be filled from.
type source struct {
	// Its identifier, the volume that has it, and the snapshot's name if it is one.
	id, volume, name string
	// Bytes.
	size int64
}

// sourceOf reads what a request says of a source; nothing if it names none.
func sourceOf(content *csi.VolumeContentSource) (*source, error) {
	switch from := content.GetType().(type) {
	case nil:
		return nil, nil
	case *csi.VolumeContentSource_Snapshot:
		id := from.Snapshot.GetSnapshotId()
		volume, name, is := split(id)
		if !is {
			return nil, status.Errorf(codes.NotFound, "there is no snapshot %q", id)
		}
		return &source{id: id, volume: volume, name: name}, nil
	case *csi.VolumeContentSource_Volume:
		id := from.Volume.GetVolumeId()
		if !volumeID.MatchString(id) {
			return nil, status.Errorf(codes.NotFound, "there is no volume %q", id)
		}
		return &source{id: id, volume: id}, nil
	default:
		return nil, status.Errorf(codes.InvalidArgument, "a source of the type %T is not known; expected a snapshot or a volume", from)
	}
}

// content is a source in the words of the interface.
func content(id string) *csi.VolumeContentSource {
	if id == "" {
		return nil
	}
	if _, _, is := split(id); is {
		from := &csi.VolumeContentSource_SnapshotSource{SnapshotId: id}
		return &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Snapshot{Snapshot: from}}
	}
	from := &csi.VolumeContentSource_VolumeSource{VolumeId: id}
	return &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Volume{Volume: from}}
}

// make makes the file of a volume, and fills it from its source, if it has one. Only then has it the volume's name.
func (c *controller) make(ctx context.Context, id string, size int64, from *source, options []string) error {
	hash := strings.TrimPrefix(id, "vol-")
	place := unfinished + hash
	// What an earlier request began and did not end.
	if err := c.discard(ctx, place); err != nil {
		return err
	}
	words := append([]string{"create", c.path(place), "--size", strconv.FormatInt(size, 10), "--label", id}, options...)
	if err := c.vsl.run(ctx, nil, words...); err != nil {
		return err
	}
	err := c.handOver(c.path(place))
	if err == nil && from != nil {
		err = c.fill(ctx, place, clonePrefix+hash, from)
	}
	if err == nil && from != nil {
		err = c.note(id, notes{Source: from.id, Grow: size > from.size})
	}
	if err == nil {
		err = os.Rename(c.path(place), c.path(id))
	}
	if err != nil {
		if left := c.discard(ctx, place); left != nil {
			log.Printf("%s is left: %v", place, left)
		}
		return err
	}
	return nil
}

// fill copies a source to a device that was made for it. A volume is copied from a snapshot, which shows one moment of it.
func (c *controller) fill(ctx context.Context, place, clone string, from *source) error {
	name := from.name
	if name == "" {
		name = clone
		release, err := c.hold(ctx, from.volume)
		if err != nil {
			return err
		}
		defer release()
		if _, err := c.cut(ctx, from.volume, clone); err != nil {
			return err
		}
	}
	err := c.copy(ctx, place, from.volume, name)
	if from.name == "" {
		_, deleted := c.change(context.WithoutCancel(ctx), "delete", from.volume, clone)
		err = errors.Join(err, deleted)
	}
	return err
}

func (c *controller) copy(ctx context.Context, place, volume, name string) error {
	release, err := c.read(ctx, volume, name)
	if err != nil {
		return err
	}
	defer release()
	// Not to be attached again when the service restarts.
	if err := c.vsl.attach(ctx, place, c.path(place), "--once"); err != nil {
		return err
	}
	// Only what holds data is read and written.
	_, err = tool(ctx, "nbdcopy", "--destination-is-zero", "--flush", c.uri(volume+"@"+name), c.uri(place))
	if err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	return retry(ctx, func() error { return c.vsl.detach(ctx, place) })
}

// uri is where an export of the service is found.
func (d *driver) uri(export string) string {
	return "nbd+unix:///" + export + "?socket=" + filepath.Join(d.runtime, "nbd.sock")
}

// discard takes away a device that was not finished, and whoever still fills it.
func (d *driver) discard(ctx context.Context, place string) error {
	if _, err := os.Stat(d.path(place)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := d.vsl.detach(ctx, place, "--force"); err != nil {
		return err
	}
	return remove(d.path(place))
}

// remove removes a file, unless it is gone.
func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return status.Error(codes.Internal, err.Error())
	}
	return nil
}

// sweep takes away what copies left that an earlier driver did not end: whoever asked for them may not come again.
func (d *driver) sweep(ctx context.Context) error {
	started, err := filepath.Glob(d.path(unfinished + "*"))
	for _, file := range started {
		err = errors.Join(err, d.discard(ctx, identifier(file)))
	}
	volumes, listing := d.volumes()
	err = errors.Join(err, listing)
	for _, id := range volumes {
		kept, reading := d.notes(id)
		err = errors.Join(err, reading)
		for _, it := range kept.Snapshots {
			if strings.HasPrefix(it.Name, clonePrefix) {
				err = errors.Join(err, d.drop(ctx, id, it.Name))
			}
		}
	}
	return err
}

// drop deletes a snapshot of a volume that may be detached.
func (d *driver) drop(ctx context.Context, id, name string) error {
	release, err := d.hold(ctx, id)
	if err != nil {
		return err
	}
	defer release()
	listed, err := d.vsl.snapshots(ctx, id)
	if err != nil || find(listed, name) == nil {
		return err
	}
	_, err = d.change(ctx, "delete", id, name)
	return err
}
