package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// vsl runs the command, which talks to the service of this node.
type vsl struct{ program string }

// device is what the driver needs to know of an attached device.
type device struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
}

// snapshot is what the driver needs to know of a snapshot.
type snapshot struct {
	Name    string    `json:"name"`
	Created time.Time `json:"created"`
}

// failure is an error as `vsl --json` prints it.
type failure struct {
	Text string `json:"error"`
	Help string `json:"help"`
	Kind string `json:"kind"`
}

// codeOf says what the kinds of errors are for gRPC.
var codeOf = map[string]codes.Code{
	"invalid":   codes.InvalidArgument,
	"not-found": codes.NotFound,
	"conflict":  codes.FailedPrecondition,
	"forbidden": codes.PermissionDenied,
}

func (v vsl) run(ctx context.Context, into any, words ...string) error {
	command := exec.CommandContext(ctx, v.program, append([]string{"--json"}, words...)...)
	var out, errs bytes.Buffer
	command.Stdout, command.Stderr = &out, &errs
	if err := command.Run(); err != nil {
		if said := understood(errs.Bytes()); said != nil {
			return said
		}
		return status.Errorf(codes.Internal, "%s %v: %v: %s", v.program, words, err, errs.String())
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(out.Bytes(), into); err != nil {
		return status.Errorf(codes.Internal, "%s %v printed no JSON that is understood: %v", v.program, words, err)
	}
	return nil
}

// understood is the service's failure as an answer; nothing if it is no failure of the service.
func understood(text []byte) error {
	var said failure
	if json.Unmarshal(text, &said) != nil || said.Text == "" {
		return nil
	}
	code, known := codeOf[said.Kind]
	if !known {
		code = codes.Internal
	}
	return status.Error(code, said.Text+"; "+said.Help)
}

// attached lists the devices of the service.
func (v vsl) attached(ctx context.Context) (map[string]device, error) {
	var said struct {
		Devices []device `json:"devices"`
	}
	err := v.run(ctx, &said, "status")
	if status.Code(err) == codes.NotFound {
		// No device is named, so it is the service that is missing.
		return nil, status.Error(codes.Unavailable, status.Convert(err).Message())
	}
	if err != nil {
		return nil, err
	}
	found := map[string]device{}
	for _, it := range said.Devices {
		found[it.Name] = it
	}
	return found, nil
}

// attach attaches a device, unless it is.
func (v vsl) attach(ctx context.Context, id, path string, options ...string) error {
	attached, err := v.attached(ctx)
	if _, is := attached[id]; err != nil || is {
		return err
	}
	return v.run(ctx, nil, append([]string{"attach", path}, options...)...)
}

// detach detaches a device, if it is attached. One that has clients is refused without --force.
func (v vsl) detach(ctx context.Context, id string, options ...string) error {
	attached, err := v.attached(ctx)
	if _, is := attached[id]; err != nil || !is {
		return err
	}
	return v.run(ctx, nil, append([]string{"detach", id}, options...)...)
}

// snapshots lists the snapshots of an attached device.
func (v vsl) snapshots(ctx context.Context, id string) ([]snapshot, error) {
	var said struct {
		Snapshots []snapshot `json:"snapshots"`
	}
	err := v.run(ctx, &said, "snapshot", "list", id)
	return said.Snapshots, err
}

// size is the capacity of a device file, attached or not.
func (v vsl) size(ctx context.Context, path string) (int64, error) {
	var said struct {
		Devices []device `json:"devices"`
	}
	if err := v.run(ctx, &said, "status", path); err != nil {
		return 0, err
	}
	if len(said.Devices) != 1 {
		return 0, status.Errorf(codes.Internal, "vsl status %s: %d devices, expected one", path, len(said.Devices))
	}
	return said.Devices[0].Bytes, nil
}

// tool runs a program of the system.
func tool(ctx context.Context, name string, words ...string) (string, error) {
	out, err := exec.CommandContext(ctx, name, words...).CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("%s %v: %w: %s", name, words, err, bytes.TrimSpace(out))
	}
	return string(bytes.TrimSpace(out)), nil
}

// exitCode is that of a tool's error; -1 if the tool did not run to its end.
func exitCode(err error) int {
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		return ended.ExitCode()
	}
	return -1
}
