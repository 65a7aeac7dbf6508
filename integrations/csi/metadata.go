package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// How many ranges a message has where the request names no number.
const rangesAtOnce = 1024

// metadata says which parts of a snapshot hold data, and which of them changed since another one.
type metadata struct {
	csi.UnimplementedSnapshotMetadataServer
	*driver
}

func (m *metadata) GetMetadataAllocated(request *csi.GetMetadataAllocatedRequest, stream csi.SnapshotMetadata_GetMetadataAllocatedServer) error {
	ctx := stream.Context()
	size, err := m.asked(ctx, request.StartingOffset, request.MaxResults, request.SnapshotId)
	if err != nil {
		return err
	}
	volume, name, _ := split(request.SnapshotId)
	release, err := m.read(ctx, volume, name)
	if err != nil {
		return err
	}
	defer release()
	batch := &batch{from: request.StartingOffset, most: int(request.MaxResults), send: func(ranges []*csi.BlockMetadata) error {
		return stream.Send(&csi.GetMetadataAllocatedResponse{
			BlockMetadataType: csi.BlockMetadataType_VARIABLE_LENGTH, VolumeCapacityBytes: size, BlockMetadata: ranges,
		})
	}}
	if err := m.allocated(ctx, request.SnapshotId, batch); err != nil {
		return err
	}
	return batch.end()
}

func (m *metadata) GetMetadataDelta(request *csi.GetMetadataDeltaRequest, stream csi.SnapshotMetadata_GetMetadataDeltaServer) error {
	ctx := stream.Context()
	size, err := m.asked(ctx, request.StartingOffset, request.MaxResults, request.BaseSnapshotId, request.TargetSnapshotId)
	if err != nil {
		return err
	}
	volume, base, _ := split(request.BaseSnapshotId)
	other, target, _ := split(request.TargetSnapshotId)
	if volume != other {
		return status.Errorf(codes.InvalidArgument, "%s and %s are snapshots of two volumes", request.BaseSnapshotId, request.TargetSnapshotId)
	}
	for _, name := range []string{base, target} {
		release, err := m.read(ctx, volume, name)
		if err != nil {
			return err
		}
		defer release()
	}
	if err := m.inOrder(ctx, volume, base, target); err != nil {
		return err
	}
	batch := &batch{from: request.StartingOffset, most: int(request.MaxResults), send: func(ranges []*csi.BlockMetadata) error {
		return stream.Send(&csi.GetMetadataDeltaResponse{
			BlockMetadataType: csi.BlockMetadataType_VARIABLE_LENGTH, VolumeCapacityBytes: size, BlockMetadata: ranges,
		})
	}}
	for from := &request.StartingOffset; from != nil; {
		page, err := m.diff(ctx, volume, base, target, *from)
		if err != nil {
			return err
		}
		for _, it := range page.Blocks {
			if err := batch.add(it.Offset, it.Size); err != nil {
				return err
			}
		}
		from = page.Next
	}
	return batch.end()
}

// asked checks what both requests have, and gives the size of the volume.
func (m *metadata) asked(ctx context.Context, from int64, most int32, ids ...string) (int64, error) {
	var size int64
	for _, id := range ids {
		if id == "" {
			return 0, status.Error(codes.InvalidArgument, "a snapshot's identifier is missing")
		}
	}
	if most < 0 {
		return 0, status.Errorf(codes.InvalidArgument, "%d ranges at most are asked for; expected a number that is not negative", most)
	}
	for _, id := range ids {
		volume, name, is := split(id)
		if !is {
			return 0, status.Errorf(codes.NotFound, "there is no snapshot %q", id)
		}
		if _, err := m.snapshot(ctx, volume, name); err != nil {
			return 0, err
		}
		has, err := m.volume(ctx, volume)
		if err != nil {
			return 0, err
		}
		size = has
	}
	if from < 0 || from > size {
		return 0, status.Errorf(codes.OutOfRange, "the offset %d is outside of the volume, which has %d bytes", from, size)
	}
	return size, nil
}

// inOrder refuses a base that is newer than its target.
func (m *metadata) inOrder(ctx context.Context, volume, base, target string) error {
	// From the oldest to the newest.
	listed, err := m.vsl.snapshots(ctx, volume)
	if err != nil {
		return err
	}
	for _, it := range listed {
		if it.Name == base {
			return nil
		}
		if it.Name == target {
			return status.Errorf(codes.InvalidArgument, "%s@%s is newer than %s; expected the older one as base", volume, base, target)
		}
	}
	return status.Errorf(codes.NotFound, "there is no snapshot %q of %s", base, volume)
}

// allocated asks the export of a snapshot where it holds data.
func (m *metadata) allocated(ctx context.Context, id string, into *batch) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	command := exec.CommandContext(ctx, "nbdinfo", "--map", m.uri(id))
	out, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	// Before the pipe is closed: by Wait.
	err = readMap(out, into)
	if err != nil {
		cancel()
	}
	if ended := command.Wait(); err == nil && ended != nil {
		err = status.Errorf(codes.Internal, "nbdinfo --map %s: %v", id, ended)
	}
	return err
}

// readMap takes the data from nbdinfo's lines: an offset, a length, flags, and what they mean.
func readMap(lines io.Reader, into *batch) error {
	scanner := bufio.NewScanner(lines)
	for scanner.Scan() {
		var offset, size int64
		var flags int
		if _, err := fmt.Sscan(scanner.Text(), &offset, &size, &flags); err != nil {
			return status.Errorf(codes.Internal, "nbdinfo --map printed %q: %v", scanner.Text(), err)
		}
		// 1: a hole.
		if flags&1 == 0 {
			if err := into.add(offset, size); err != nil {
				return err
			}
		}
	}
	if err := scanner.Err(); err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	return nil
}

// batch gathers ranges, and sends them when it has so many.
type batch struct {
	from   int64
	most   int
	send   func([]*csi.BlockMetadata) error
	ranges []*csi.BlockMetadata
	sent   bool
}

// add takes a range, as far as it lies behind the offset that was asked for.
func (b *batch) add(offset, size int64) error {
	if offset+size <= b.from {
		return nil
	}
	b.ranges = append(b.ranges, &csi.BlockMetadata{ByteOffset: offset, SizeBytes: size})
	if len(b.ranges) < b.limit() {
		return nil
	}
	return b.flush()
}

func (b *batch) limit() int {
	if b.most == 0 {
		return rangesAtOnce
	}
	return min(b.most, rangesAtOnce)
}

func (b *batch) flush() error {
	ranges := b.ranges
	b.ranges, b.sent = nil, true
	return b.send(ranges)
}

// end sends the last ones. A message without any says how large the volume is.
func (b *batch) end() error {
	if len(b.ranges) == 0 && b.sent {
		return nil
	}
	return b.flush()
}

// page is a part of what differs between two snapshots.
type page struct {
	Blocks []struct {
		Offset int64 `json:"byte_offset"`
		Size   int64 `json:"size_bytes"`
	} `json:"blocks"`
	Next *int64 `json:"next"`
}

// diff asks the service for it a page at a time, since there may be many.
func (m *metadata) diff(ctx context.Context, volume, base, target string, from int64) (*page, error) {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(m.runtime, "api.sock"))
	}
	client := http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	query := url.Values{"with": {target}, "from": {strconv.FormatInt(from, 10)}}
	where := url.URL{Scheme: "http", Host: "service", Path: "/api/v1/devices/" + volume + "/snapshots/" + base + "/diff", RawQuery: query.Encode()}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, where.String(), nil)
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, status.Error(codes.Unavailable, err.Error())
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, status.Error(codes.Unavailable, err.Error())
	}
	if said := understood(text); said != nil {
		return nil, said
	}
	found := &page{}
	if err := json.Unmarshal(text, found); err != nil || response.StatusCode != http.StatusOK {
		return nil, status.Errorf(codes.Internal, "%s answered %s and no JSON that is understood", where.Path, response.Status)
	}
	return found, nil
}
