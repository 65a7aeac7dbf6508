// Command openvsl-csi makes the devices of an OpenVSL service volumes of Kubernetes: one driver and one service on each node, whose
// volumes are used on that node.
package main

import (
	"context"
	"flag"
	"log"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

const (
	driverName  = "csi.openvsl.org"
	topologyKey = "csi.openvsl.org/node"
	version     = "0.1.0"
	// How long a device may have clients that are on their way out.
	patience = 10 * time.Second
	pause    = 100 * time.Millisecond
)

// driver is what controller and node have in common.
type driver struct {
	vsl       vsl
	nodeID    string
	directory string
	run       string
	runtime   string
	// What requests are under way for, and who needs what attached.
	busy, uses sync.Map
}

func (d *driver) path(id string) string { return filepath.Join(d.directory, id+".vsl") }

func (d *driver) topology() *csi.Topology {
	return &csi.Topology{Segments: map[string]string{topologyKey: d.nodeID}}
}

// identifier is a volume's, from the path of its file.
func identifier(path string) string { return strings.TrimSuffix(filepath.Base(path), ".vsl") }

// volumes lists those of this node, in order.
func (d *driver) volumes() ([]string, error) {
	files, err := filepath.Glob(d.path("vol-*"))
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	var found []string
	for _, file := range files {
		if id := identifier(file); volumeID.MatchString(id) {
			found = append(found, id)
		}
	}
	slices.Sort(found)
	return found, nil
}

// reachable refuses what is to be used on other nodes than this one.
func (d *driver) reachable(asked *csi.TopologyRequirement) error {
	here := func(it *csi.Topology) bool { return it.Segments[topologyKey] == d.nodeID }
	if among := asked.GetRequisite(); len(among) > 0 && !slices.ContainsFunc(among, here) {
		return status.Errorf(codes.ResourceExhausted, "the node %s is not among those that are asked for", d.nodeID)
	}
	return nil
}

// volume is the size of a volume of this node.
func (d *driver) volume(ctx context.Context, id string) (int64, error) {
	if !volumeID.MatchString(id) {
		return 0, status.Errorf(codes.NotFound, "there is no volume %q", id)
	}
	if _, err := os.Stat(d.path(id)); err != nil {
		return 0, status.Errorf(codes.NotFound, "there is no volume %q: %v", id, err)
	}
	return d.vsl.size(ctx, d.path(id))
}

// prepare makes the driver's directories. The service must be there, because the volumes' one is given to its user.
func (d *driver) prepare() error {
	for _, needed := range []string{d.directory, d.run} {
		if err := os.MkdirAll(needed, 0o700); err != nil {
			return err
		}
	}
	return d.handOver(d.directory)
}

// handOver gives a file to the service's user, whom its runtime directory belongs to: the driver is root, and the service is not.
func (d *driver) handOver(path string) error {
	info, err := os.Stat(d.runtime)
	if err != nil {
		return err
	}
	owner := info.Sys().(*syscall.Stat_t)
	return os.Chown(path, int(owner.Uid), int(owner.Gid))
}

// lock takes a volume for one request. A second one is told to come again, as the specification has it.
func (d *driver) lock(id string) (func(), error) {
	if _, taken := d.busy.LoadOrStore(id, true); taken {
		return nil, status.Errorf(codes.Aborted, "another request for %s is under way", id)
	}
	return func() { d.busy.Delete(id) }, nil
}

// retry asks again while something is in the way.
func retry(ctx context.Context, ask func() error) error {
	deadline := time.Now().Add(patience)
	for {
		err := ask()
		if status.Code(err) != codes.FailedPrecondition || time.Now().After(deadline) || ctx.Err() != nil {
			return err
		}
		time.Sleep(pause)
	}
}

// identity says what this driver is.
type identity struct {
	csi.UnimplementedIdentityServer
	*driver
}

func (i *identity) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: driverName, VendorVersion: version}, nil
}

func (i *identity) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	var capabilities []*csi.PluginCapability
	for _, kind := range []csi.PluginCapability_Service_Type{
		csi.PluginCapability_Service_CONTROLLER_SERVICE,
		csi.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS,
		csi.PluginCapability_Service_SNAPSHOT_METADATA_SERVICE,
	} {
		service := &csi.PluginCapability_Service_{Service: &csi.PluginCapability_Service{Type: kind}}
		capabilities = append(capabilities, &csi.PluginCapability{Type: service})
	}
	return &csi.GetPluginCapabilitiesResponse{Capabilities: capabilities}, nil
}

func (i *identity) Probe(ctx context.Context, _ *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	_, err := i.vsl.attached(ctx)
	return &csi.ProbeResponse{Ready: wrapperspb.Bool(err == nil)}, nil
}

// server answers with a driver.
func server(d *driver) *grpc.Server {
	report := func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		response, err := handler(ctx, request)
		if err != nil {
			log.Printf("%s: %v", info.FullMethod, err)
			return nil, err
		}
		return response, nil
	}
	reportStream := func(server any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		err := handler(server, stream)
		if err != nil {
			log.Printf("%s: %v", info.FullMethod, err)
		}
		return err
	}
	made := grpc.NewServer(grpc.UnaryInterceptor(report), grpc.StreamInterceptor(reportStream))
	csi.RegisterIdentityServer(made, &identity{driver: d})
	csi.RegisterControllerServer(made, &controller{driver: d})
	csi.RegisterNodeServer(made, &node{driver: d})
	csi.RegisterSnapshotMetadataServer(made, &metadata{driver: d})
	return made
}

func main() {
	endpoint := flag.String("endpoint", "unix:///csi/csi.sock", "socket to listen on")
	nodeID := flag.String("node-id", os.Getenv("NODE_NAME"), "name of this node")
	directory := flag.String("directory", "/var/lib/openvsl/csi", "directory for the volumes' files")
	run := flag.String("run", "/run/openvsl-csi", "directory, in memory, for what is connected")
	program := flag.String("vsl", "vsl", "the vsl command; OPENVSL_RUNTIME_DIR says which service it asks")
	flag.Parse()
	if *nodeID == "" {
		log.Fatal("--node-id or NODE_NAME must say how this node is called")
	}
	runtime := os.Getenv("OPENVSL_RUNTIME_DIR")
	if runtime == "" {
		runtime = "/run/openvsl"
	}
	d := &driver{vsl: vsl{*program}, nodeID: *nodeID, directory: *directory, run: *run, runtime: runtime}
	if err := d.prepare(); err != nil {
		log.Fatal(err)
	}
	if err := d.sweep(context.Background()); err != nil {
		// It is tried again with the next start.
		log.Printf("what was left by copies: %v", err)
	}
	path := strings.TrimPrefix(*endpoint, "unix://")
	// That of an earlier run would be in the way.
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		log.Fatal(err)
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(server(d).Serve(listener))
}
